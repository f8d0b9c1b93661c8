"""The two sides answering filters, each in a process of its own."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import numpy as np

from benchmarks.workers import Block, call, start_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from benchmarks.cases import Case

Action = Literal["count", "rows"]


class FilterEngine(Protocol):
    """A library that answers filters on one opened dataset."""

    def prepare(self) -> None:
        """Do what belongs to the start of a process, not to a query."""

    def open(self, path: Path) -> None:
        """Open a dataset; later calls ask it."""

    def count(self, text: str) -> int:
        """Return how many rows pass a filter."""

    def rows(self, text: str) -> pa.Table:
        """Return the ids of the rows that pass a filter."""

    def nearest(self, query: NDArray[np.float32], text: str, case: Case, k: int) -> pa.Table:
        """Return the ids of the nearest among the rows that pass a filter."""


class LanceCoreFilters:
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

    def count(self, text: str) -> int:
        """Count rows."""
        return cast("int", self._dataset.count_rows(text))

    def rows(self, text: str) -> pa.Table:
        """Return ids."""
        return self._dataset.scan(["id"], filter=text).read_all()

    def nearest(self, query: NDArray[np.float32], text: str, case: Case, k: int) -> pa.Table:
        """Search with the parameters of ``case``."""
        return self._dataset.search(
            query,
            k,
            columns=["id", "_distance"],
            filter=text,
            nprobes=case.num_probes,
            refine_factor=case.refine_factor,
        )


class PylanceFilters:
    """The peer."""

    def __init__(self) -> None:
        self._lance: Any = import_module("lance")
        self._dataset: Any = None

    def prepare(self) -> None:
        """Do nothing: its import loads compiled code."""

    def open(self, path: Path) -> None:
        """Open a dataset."""
        self._dataset = self._lance.dataset(str(path))

    def count(self, text: str) -> int:
        """Count rows."""
        return cast("int", self._dataset.count_rows(text))

    def rows(self, text: str) -> pa.Table:
        """Return ids."""
        return self._dataset.to_table(columns=["id"], filter=text)

    def nearest(self, query: NDArray[np.float32], text: str, case: Case, k: int) -> pa.Table:
        """Search with the parameters of ``case``."""
        nearest = {
            "column": "vector",
            "q": query,
            "k": k,
            "nprobes": case.num_probes,
            "refine_factor": case.refine_factor,
        }
        return self._dataset.to_table(
            columns=["id", "_distance"], nearest=nearest, filter=text, prefilter=True
        )


FILTER_ENGINES: dict[str, type[FilterEngine]] = {
    "ours": LanceCoreFilters,
    "pylance": PylanceFilters,
}


class FilterWorker:
    """The near end of a measuring process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def open(self, path: Path) -> None:
        """Open the dataset that later calls ask."""
        call(self._connection, "open", path)

    def numbers(self, action: Action, texts: Sequence[str]) -> list[int]:
        """Return how many rows pass each filter."""
        return cast("list[int]", call(self._connection, "numbers", action, texts))

    def measure(self, action: Action, texts: Sequence[str]) -> Block:
        """Time every filter."""
        return cast("Block", call(self._connection, "measure", action, texts))

    def find(
        self, queries: NDArray[np.float32], texts: Sequence[str], case: Case, k: int
    ) -> NDArray[np.int64]:
        """Return the ids found for each query under its filter, shape ``(m, k)``."""
        return cast("NDArray[np.int64]", call(self._connection, "find", queries, texts, case, k))

    def search(
        self, queries: NDArray[np.float32], texts: Sequence[str], case: Case, k: int
    ) -> Block:
        """Time every query under its filter."""
        return cast("Block", call(self._connection, "search", queries, texts, case, k))


@contextmanager
def start_filter_worker(engine_name: str) -> Iterator[FilterWorker]:
    """Run one side in a fresh process; its kernels are loaded when this returns."""
    with start_process(partial(_calls, engine_name)) as connection:
        yield FilterWorker(connection)


def _calls(engine_name: str) -> dict[str, Callable[..., object]]:
    engine = FILTER_ENGINES[engine_name]()
    engine.prepare()
    return {
        "open": engine.open,
        "numbers": partial(_numbers, engine),
        "measure": partial(_measure, engine),
        "find": partial(_find, engine),
        "search": partial(_search, engine),
    }


def _numbers(engine: FilterEngine, action: Action, texts: Sequence[str]) -> list[int]:
    if action == "count":
        return [engine.count(text) for text in texts]
    return [engine.rows(text).num_rows for text in texts]


def _measure(engine: FilterEngine, action: Action, texts: Sequence[str]) -> Block:
    run = engine.count if action == "count" else engine.rows
    return timed([partial(run, text) for text in texts])


def _find(
    engine: FilterEngine,
    queries: NDArray[np.float32],
    texts: Sequence[str],
    case: Case,
    k: int,
) -> NDArray[np.int64]:
    found = np.full((len(queries), k), -1, np.int64)
    for row, (query, text) in enumerate(zip(queries, texts, strict=True)):
        ids = engine.nearest(query, text, case, k).column("id").to_numpy()
        found[row, : len(ids)] = ids
    return found


def _search(
    engine: FilterEngine,
    queries: NDArray[np.float32],
    texts: Sequence[str],
    case: Case,
    k: int,
) -> Block:
    pairs = zip(queries, texts, strict=True)
    return timed([partial(engine.nearest, query, text, case, k) for query, text in pairs])


def timed(actions: Sequence[Callable[[], object]]) -> Block:
    """Do things one after the other, and time each."""
    latencies = np.empty(len(actions))
    cpu_started = time.process_time()
    for number, action in enumerate(actions):
        started = time.perf_counter()
        action()
        latencies[number] = (time.perf_counter() - started) * 1e3
    return Block(latencies, (time.process_time() - cpu_started) * 1e3, float(latencies.sum()))
