"""The two sides, each behind the same three calls; a process loads only the one it measures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from benchmarks.cases import Case

COLUMNS = ["id", "_distance"]


class Engine(Protocol):
    """A library that answers cases from one opened dataset."""

    def prepare(self) -> None:
        """Do what belongs to the start of a process, not to a query."""

    def open(self, path: Path) -> None:
        """Open a dataset; later searches run on it."""

    def search(self, query: NDArray[np.float32], case: Case, k: int) -> pa.Table:
        """Return the ids and distances of the ``k`` nearest rows."""

    def bytes_read(self) -> int:
        """Return the bytes read since the dataset was opened."""


class LanceCore:
    """Our library."""

    def __init__(self) -> None:
        self._core: Any = import_module("lance_core")
        self._metering: Any = import_module("lance_core.io.metering")
        self._dataset: Any = None
        self._bytes_read = 0

    def prepare(self) -> None:
        """Load the compiled kernels, as a server does before it says it is ready."""
        import_module("lance_core.kernels.warm").warm_kernels()

    def open(self, path: Path) -> None:
        """Open a dataset."""
        with self._metering.metered() as meter:
            self._dataset = self._core.open_dataset(str(path))
        self._bytes_read = meter.bytes_read

    def search(self, query: NDArray[np.float32], case: Case, k: int) -> pa.Table:
        """Search with the parameters of ``case``."""
        with self._metering.metered() as meter:
            table = self._dataset.search(
                query,
                k,
                columns=COLUMNS,
                nprobes=case.num_probes,
                refine_factor=case.refine_factor,
                use_index=case.num_probes is not None,
            )
        self._bytes_read += meter.bytes_read
        return table

    def bytes_read(self) -> int:
        """Return what the store delivered."""
        return self._bytes_read


class Pylance:
    """The peer."""

    def __init__(self) -> None:
        self._lance: Any = import_module("lance")
        self._dataset: Any = None

    def prepare(self) -> None:
        """Do nothing: its import loads compiled code."""

    def open(self, path: Path) -> None:
        """Open a dataset."""
        self._dataset = self._lance.dataset(str(path))

    def search(self, query: NDArray[np.float32], case: Case, k: int) -> pa.Table:
        """Search with the parameters of ``case``."""
        nearest: dict[str, object] = {"column": "vector", "q": query, "k": k}
        if case.num_probes is None:
            nearest |= {"use_index": False, "metric": "l2"}
        else:
            nearest |= {"nprobes": case.num_probes, "refine_factor": case.refine_factor}
        return self._dataset.to_table(columns=COLUMNS, nearest=nearest)

    def bytes_read(self) -> int:
        """Return what it counts itself."""
        return cast("int", self._dataset.io_stats_snapshot().read_bytes)


ENGINES: dict[str, type[Engine]] = {"ours": LanceCore, "pylance": Pylance}
