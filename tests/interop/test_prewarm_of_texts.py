"""Loading an inverted index before the first query asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

from lance_core.dataset.face import Dataset
from lance_core.errors import CorruptFileError, DeadlineExceededError, InvalidRequestError
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.query import prewarm_text
from lance_core.query.deadline import Deadline
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot
from tests.text_indices import texts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lance_core.query.prewarm import Prewarmed

pytestmark = pytest.mark.interop

NAME = "words"
WAYS: dict[str, Mapping[str, Any]] = {
    "plain": {},
    "positions": {"with_position": True},
    "large blocks": {"with_position": True, "block_size": 256},
}


@pytest.fixture(scope="module", params=WAYS)
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A table whose index has two segments, the first with two deleted rows."""
    path = tmp_path_factory.mktemp("prewarm") / "a.lance"
    column = pa.array(texts(2_000), pa.string())
    theirs = lance.write_dataset(pa.table({"t": column.slice(0, 1_500)}), str(path))
    theirs.create_scalar_index("t", "INVERTED", name=NAME, **WAYS[request.param])
    lance.write_dataset(pa.table({"t": column.slice(1_500)}), str(path), mode="append")
    theirs = lance.dataset(str(path))
    theirs.optimize.optimize_indices(num_indices_to_merge=0)
    theirs.delete("_rowid IN (3, 700)")
    return path


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prewarm_text, "_PART_BYTES", 20_000)


def open_counted(folder: Path, session: Session) -> tuple[Dataset, CountingStore]:
    store = CountingStore(open_store(str(folder)))
    return Dataset(session, open_snapshot(session.scheduler_for(store))), store


def index_reads(store: CountingStore) -> list[str]:
    return [path for path, _, _ in store.ranges if path.startswith("_indices/")]


def has_positions(dataset: Dataset) -> bool:
    told = dataset.index_statistics(NAME).text
    assert told is not None
    return told.has_positions


def test_queries_after_it_read_nothing_of_the_index(folder: Path) -> None:
    dataset, store = open_counted(folder, Session())
    done = dataset.prewarm(NAME)
    assert done.is_complete
    assert (done.stopped, done.skipped, done.rows) == (None, (), 0)
    assert done.bytes_read > 0
    assert done.partitions > 4
    queries = ["aw0", "aw0 bw1 cw2", "nothing", "often rare"]
    queries += ['"aw0 bw1"', '"often often"'] if has_positions(dataset) else []
    for query in queries:
        store.reset()
        found = dataset.search_text(query, 5, with_row_id=True, columns=[])
        assert index_reads(store) == [], query
        fresh = open_counted(folder, Session())[0]
        assert found.equals(fresh.search_text(query, 5, with_row_id=True, columns=[]))


def test_the_second_time_nothing_is_read_but_how_long_lists_are(folder: Path) -> None:
    dataset, store = open_counted(folder, Session())
    first = dataset.prewarm(NAME)
    store.reset()
    second = dataset.prewarm(NAME)
    assert {path.rpartition("_")[2] for path in index_reads(store)} == {"invert.lance"}
    assert second.store_requests == 2
    assert (second.partitions, second.nbytes) == (first.partitions, first.nbytes)


def test_it_stops_and_says_so_where_the_budget_ends(folder: Path) -> None:
    ample = Session()
    dataset, _ = open_counted(folder, ample)
    needed = dataset.prewarm(NAME).nbytes
    session = Session(ample.cache_stats.used_bytes - needed // 2)
    told: list[Prewarmed] = []
    small, _ = open_counted(folder, session)
    done = small.prewarm(NAME, progress=told.append)
    assert done.stopped is not None
    assert str(session.cache_stats.budget_bytes) in done.stopped
    assert 0 < done.partitions < done.partitions_total
    assert done.nbytes < needed
    assert [each.partitions for each in told] == sorted({each.partitions for each in told})
    assert session.cache_stats.used_bytes <= session.cache_stats.budget_bytes


def test_partitions_of_it_are_refused(folder: Path) -> None:
    dataset, _ = open_counted(folder, Session())
    with pytest.raises(InvalidRequestError, match="no partitions to name"):
        dataset.prewarm(NAME, [0])


def test_it_stops_at_its_deadline(folder: Path) -> None:
    dataset, _ = open_counted(folder, Session())
    with pytest.raises(DeadlineExceededError):
        dataset.prewarm(NAME, deadline=Deadline.after(0))


def test_an_index_of_no_tokens_is_loaded(tmp_path: Path) -> None:
    theirs = lance.write_dataset(pa.table({"t": ["", None, "the"]}), str(tmp_path / "a.lance"))
    theirs.create_scalar_index("t", "INVERTED", name=NAME)
    dataset, _ = open_counted(tmp_path / "a.lance", Session())
    done = dataset.prewarm(NAME)
    assert done.is_complete
    assert done.partitions <= 1


def test_what_is_damaged_is_an_error(tmp_path: Path) -> None:
    theirs = lance.write_dataset(pa.table({"t": ["a b c"] * 10}), str(tmp_path / "a.lance"))
    theirs.create_scalar_index("t", "INVERTED", name=NAME)
    (lost,) = (tmp_path / "a.lance" / "_indices").glob("*/part_0_docs.lance")
    lost.unlink()
    dataset, _ = open_counted(tmp_path / "a.lance", Session())
    with pytest.raises(CorruptFileError, match=r"part_0_docs.lance"):
        dataset.prewarm(NAME)
