"""The two sides, each behind the same three calls; a process loads only the one it measures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

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

    def cold_bytes(self, path: Path, query: NDArray[np.float32], case: Case, k: int) -> int:
        """Return what opening the dataset anew and one query read, with caches of their own."""


class LanceCore:
    """Our library."""

    def __init__(self) -> None:
        self._core: Any = import_module("lance_core")
        self._dataset: Any = None

    def prepare(self) -> None:
        """Load the compiled kernels, as a server does before it says it is ready."""
        import_module("lance_core.kernels.warm").warm_kernels()

    def open(self, path: Path) -> None:
        """Open a dataset."""
        self._dataset = self._core.open_dataset(str(path))

    def search(self, query: NDArray[np.float32], case: Case, k: int) -> pa.Table:
        """Search with the parameters of ``case``."""
        return self._dataset.search(
            query,
            k,
            columns=COLUMNS,
            nprobes=case.num_probes,
            refine_factor=case.refine_factor,
            use_index=case.num_probes is not None,
        )

    def cold_bytes(self, path: Path, query: NDArray[np.float32], case: Case, k: int) -> int:
        """Return what the store delivered."""
        request = import_module("lance_core.query.request").VectorQuery(
            vectors=query[np.newaxis],
            k=k,
            columns=tuple(COLUMNS),
            min_probes=case.num_probes,
            max_probes=case.num_probes,
            refine_factor=case.refine_factor,
        )
        with import_module("lance_core.io.metering").metered() as opening:
            dataset = self._core.open_dataset(str(path))
        return cast("int", opening.bytes_read + dataset.run(request).stats.bytes_read)


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

    def cold_bytes(self, path: Path, query: NDArray[np.float32], case: Case, k: int) -> int:
        """Return what it counts itself."""
        self.open(path)
        self.search(query, case, k)
        return cast("int", self._dataset.io_stats_snapshot().read_bytes)


ENGINES: dict[str, type[Engine]] = {"ours": LanceCore, "pylance": Pylance}
