"""Loading an index before it is searched: all, some of it, or what fits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import lance
import pytest

from lance_core.dataset import open_dataset
from lance_core.dataset.face import Dataset
from lance_core.errors import (
    DeadlineExceededError,
    IndexNotFoundError,
    InvalidRequestError,
)
from lance_core.index.vector.blocks import load_blocks
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.query.deadline import Deadline
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot
from tests.filtered_tables import DIMENSION, NUM_PARTITIONS, NUM_ROWS, draw, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.index.ordinals import RowSpace
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.query.prewarm import Prewarmed

pytestmark = pytest.mark.interop

WAIT_S = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prewarm") / "a.lance"
    write_table(path, "two segments", "IVF_PQ", "l2")
    lance.dataset(str(path)).create_scalar_index("share", "BTREE")
    return path


def open_counted(folder: Path, session: Session) -> tuple[Dataset, CountingStore]:
    store = CountingStore(open_store(str(folder)))
    return Dataset(session, open_snapshot(session.scheduler_for(store))), store


def index_reads(store: CountingStore) -> list[str]:
    return [path for path, _, _ in store.ranges if path.startswith("_indices/")]


def test_the_first_query_after_it_reads_nothing_of_the_index(folder: Path) -> None:
    dataset, store = open_counted(folder, Session())
    done = dataset.prewarm("vec_idx")
    assert done.is_complete
    assert done.stopped is None
    assert done.partitions == done.partitions_total > NUM_PARTITIONS
    assert done.rows >= NUM_ROWS
    assert done.bytes_read > 0
    store.reset()
    dataset.search(draw(1, 1)[0], k=5, nprobes=NUM_PARTITIONS)
    assert index_reads(store) == []


def test_the_second_time_nothing_is_read(folder: Path) -> None:
    dataset, _ = open_counted(folder, Session())
    first, second = dataset.prewarm("vec_idx"), dataset.prewarm("vec_idx")
    assert (second.bytes_read, second.store_requests) == (0, 0)
    assert (second.rows, second.nbytes) == (first.rows, first.nbytes)


def test_only_the_partitions_that_are_named_are_loaded(folder: Path) -> None:
    whole, _ = open_counted(folder, Session())
    some, _ = open_counted(folder, Session())
    done = some.prewarm("vec_idx", [0, 3, 3])
    assert done.is_complete
    assert done.bytes_read < whole.prewarm("vec_idx").bytes_read
    assert done.partitions == done.partitions_total
    assert 2 <= done.partitions <= 4


def test_what_is_done_is_told_on_the_way(folder: Path) -> None:
    told: list[Prewarmed] = []
    done = open_dataset(folder).prewarm("vec_idx", progress=told.append)
    assert told[-1] == done
    assert len(told) >= 2
    for before, after in pairwise(told):
        assert before.partitions < after.partitions <= after.partitions_total
        assert before.rows <= after.rows
        assert before.nbytes < after.nbytes


def test_it_stops_and_says_so_where_the_budget_ends(folder: Path) -> None:
    ample = Session()
    needed = open_dataset(folder, session=ample).prewarm("vec_idx").nbytes
    budget = ample.cache_stats.used_bytes - needed // 2
    session = Session(budget)
    done = open_dataset(folder, session=session).prewarm("vec_idx")
    assert done.stopped is not None
    assert str(budget) in done.stopped
    assert 0 < done.partitions < done.partitions_total
    assert 0 < done.nbytes < needed
    assert session.cache_stats.used_bytes <= budget


def test_without_room_for_anything_nothing_is_said_to_be_loaded(folder: Path) -> None:
    done = open_dataset(folder, session=Session(100)).prewarm("vec_idx")
    assert (done.partitions, done.rows) == (0, 0)
    assert done.stopped is not None


@pytest.mark.parametrize("partition", [-1, 1_000_000])
def test_a_partition_that_no_segment_has_is_refused(folder: Path, partition: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"no partition {partition}; they are 0 to"):
        open_dataset(folder).prewarm("vec_idx", [partition])


def test_an_index_that_is_not_there_is_not_found(folder: Path) -> None:
    with pytest.raises(IndexNotFoundError, match=r"there are: share_idx, vec_idx"):
        open_dataset(folder).prewarm("no_such")


def test_it_stops_at_its_deadline(folder: Path) -> None:
    with pytest.raises(DeadlineExceededError):
        open_dataset(folder).prewarm("vec_idx", deadline=Deadline.after(0))


def test_a_query_meanwhile_waits_for_what_is_being_loaded_and_loads_nothing_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, _ = open_counted(folder, Session())
    loaded: list[tuple[str, int]] = []

    def note(segment: VectorSegment, space: RowSpace, partitions: list[int], *rest: Any) -> Any:
        loaded.extend((segment.uuid, each) for each in partitions)
        return load_blocks(segment, space, partitions, *rest)

    monkeypatch.setattr("lance_core.index.vector.bound.load_blocks", note)
    started, go_on = threading.Event(), threading.Event()

    def pause(_: Prewarmed) -> None:
        started.set()
        assert go_on.wait(WAIT_S)

    with ThreadPoolExecutor(2) as pool:
        warming = pool.submit(dataset.prewarm, "vec_idx", progress=pause)
        assert started.wait(WAIT_S)
        searching = pool.submit(dataset.search, draw(1, 1)[0], 5, nprobes=NUM_PARTITIONS)
        go_on.set()
        assert searching.result(WAIT_S).num_rows == 5
        done = warming.result(WAIT_S)
    assert done.is_complete
    assert len(loaded) == len(set(loaded)) == done.partitions_total


def test_the_figures_of_a_dataset_are_its_own(folder: Path, tmp_path: Path) -> None:
    session = Session()
    write_table(tmp_path / "b.lance", "fresh", "IVF_FLAT", "l2")
    one: Any = open_dataset(folder, session=session)
    other = open_dataset(tmp_path / "b.lance", session=session)
    done = one.prewarm("vec_idx")
    assert other.cache_stats.used_bytes == 0
    figures = one.cache_stats
    assert done.nbytes <= figures.used_bytes == session.cache_stats.used_bytes
    assert figures.misses > 0
    query = draw(1, 1)[0]
    assert len(query) == DIMENSION
    hits = figures.hits
    one.search(query, k=5, nprobes=2)
    assert one.cache_stats.hits > hits
    other.search(query, k=5)
    assert other.cache_stats.entries > 0
    assert sum(f.used_bytes for f in session.cache.figures().values()) == (
        session.cache_stats.used_bytes
    )
