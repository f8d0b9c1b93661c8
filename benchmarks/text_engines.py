"""The two sides searching texts and indexing them, each in a process of its own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from benchmarks.builds import BUDGET_BYTES, watched
from benchmarks.cases import K
from benchmarks.filter_engines import timed
from benchmarks.workers import Block, call, start_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from benchmarks.builds import Built

COLUMNS = ["id", "_score"]
COLD_COLUMNS = ["_rowid", "_score"]
"""What is asked where bytes are counted: the index alone has it."""


@dataclass(frozen=True, slots=True)
class TextAsk:
    """What both sides are asked: ``or`` and ``and`` are match queries of some words."""

    kind: Literal["or", "and", "phrase"]
    words: str
    filter: str | None = None


class TextEngine(Protocol):
    """A library that searches texts in one opened dataset."""

    def prepare(self) -> None:
        """Do what belongs to the start of a process, not to a query."""

    def open(self, path: Path) -> None:
        """Open a dataset; later searches run on it."""

    def search(self, ask: TextAsk, columns: list[str]) -> pa.Table:
        """Return the best rows."""

    def bytes_read(self, path: Path, ask: TextAsk) -> int:
        """Return what opening the dataset anew and one query read, with caches of their own."""

    def build(self, path: Path) -> object:
        """Build an index with positions."""


class LanceCoreTexts:
    """Our library."""

    def __init__(self) -> None:
        self._core: Any = import_module("lance_core")
        self._queries: Any = import_module("lance_core.index.text.queries")
        self._dataset: Any = None

    def prepare(self) -> None:
        """Load the compiled kernels, as a server does before it says it is ready."""
        import_module("lance_core.kernels.warm").warm_kernels()

    def open(self, path: Path) -> None:
        """Open a dataset."""
        self._dataset = self._core.open_dataset(str(path))

    def search(self, ask: TextAsk, columns: list[str]) -> pa.Table:
        """Search."""
        query = self._query(ask)
        return self._dataset.search_text(query, K, columns=columns, filter=ask.filter)

    def bytes_read(self, path: Path, ask: TextAsk) -> int:
        """Return what the store delivered."""
        with import_module("lance_core.io.metering").metered() as meter:
            self.open(path)
            request = import_module("lance_core.query.text_request").TextQuery(
                self._query(ask), K, tuple(COLD_COLUMNS)
            )
            searching = self._dataset.run(request).stats.bytes_read
        return cast("int", meter.bytes_read + searching)

    def build(self, path: Path) -> object:
        """Build an index."""
        dataset = self._core.open_dataset(str(path))
        return dataset.create_index(
            "text", "INVERTED", with_position=True, memory_bytes=BUDGET_BYTES
        )

    def _query(self, ask: TextAsk) -> object:
        if ask.kind == "phrase":
            return self._queries.PhraseQuery(ask.words, "text")
        return self._queries.MatchQuery(ask.words, "text", operator=ask.kind)


class PylanceTexts:
    """The peer."""

    def __init__(self) -> None:
        self._lance: Any = import_module("lance")
        self._queries: Any = import_module("lance.query")
        self._dataset: Any = None

    def prepare(self) -> None:
        """Do nothing: its import loads compiled code."""

    def open(self, path: Path) -> None:
        """Open a dataset."""
        self._dataset = self._lance.dataset(str(path))

    def search(self, ask: TextAsk, columns: list[str]) -> pa.Table:
        """Search."""
        return self._dataset.to_table(
            columns=columns,
            full_text_query=self._query(ask),
            limit=K,
            filter=ask.filter,
            prefilter=True,
        )

    def bytes_read(self, path: Path, ask: TextAsk) -> int:
        """Return what it counts itself."""
        self.open(path)
        self.search(ask, COLD_COLUMNS)
        return cast("int", self._dataset.io_stats_snapshot().read_bytes)

    def build(self, path: Path) -> object:
        """Build an index."""
        dataset = self._lance.dataset(str(path))
        return dataset.create_scalar_index("text", "INVERTED", with_position=True)

    def _query(self, ask: TextAsk) -> object:
        if ask.kind == "phrase":
            return self._queries.PhraseQuery(ask.words, "text")
        operator = self._queries.FullTextOperator[ask.kind.upper()]
        return self._queries.MatchQuery(ask.words, "text", operator=operator)


TEXT_ENGINES: dict[str, type[TextEngine]] = {"ours": LanceCoreTexts, "pylance": PylanceTexts}


class TextWorker:
    """The near end of a measuring process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def open(self, path: Path) -> None:
        """Open the dataset that later calls search."""
        call(self._connection, "open", path)

    def scores(self, asks: Sequence[TextAsk]) -> list[NDArray[np.float32]]:
        """Return the scores found for each query, best first."""
        return cast("list[NDArray[np.float32]]", call(self._connection, "scores", asks))

    def measure(self, asks: Sequence[TextAsk]) -> Block:
        """Time every query."""
        return cast("Block", call(self._connection, "measure", asks))

    def bytes_read(self, path: Path, ask: TextAsk) -> int:
        """Return what a process that has nothing in its caches reads for one query."""
        return cast("int", call(self._connection, "bytes_read", path, ask))

    def build(self, path: Path) -> Built:
        """Build an index of texts that have none."""
        return cast("Built", call(self._connection, "build", path))


@contextmanager
def start_text_worker(engine_name: str) -> Iterator[TextWorker]:
    """Run one side in a fresh process; its kernels are loaded when this returns."""
    with start_process(partial(_calls, engine_name)) as connection:
        yield TextWorker(connection)


def _calls(engine_name: str) -> dict[str, Callable[..., object]]:
    engine = TEXT_ENGINES[engine_name]()
    engine.prepare()
    return {
        "open": engine.open,
        "scores": partial(_scores, engine),
        "measure": partial(_measure, engine),
        "bytes_read": engine.bytes_read,
        "build": partial(_build, engine),
    }


def _scores(engine: TextEngine, asks: Sequence[TextAsk]) -> list[NDArray[np.float32]]:
    return [engine.search(ask, COLUMNS).column("_score").to_numpy() for ask in asks]


def _measure(engine: TextEngine, asks: Sequence[TextAsk]) -> Block:
    return timed([partial(engine.search, ask, COLUMNS) for ask in asks])


def _build(engine: TextEngine, path: Path) -> Built:
    return watched(partial(engine.build, path))
