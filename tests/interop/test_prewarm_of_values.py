"""Loading an index of values before the first filter asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.face import Dataset
from lance_core.errors import CorruptFileError, DeadlineExceededError, InvalidRequestError
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.query.deadline import Deadline
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot
from tests.unknown_index import write_unknown_index

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.query.prewarm import Prewarmed

pytestmark = pytest.mark.interop

NUM_ROWS = 20_000
KINDS: dict[Any, str] = {
    "BTREE": "id",
    "BITMAP": "few",
    "LABEL_LIST": "tags",
    "NGRAM": "text",
    "ZONEMAP": "zoned",
    "BLOOMFILTER": "hashed",
}
FILTERS = {
    "BTREE": ["id = 77", "id > 19000", "id IS NULL", "NOT id < 500"],
    "BITMAP": ["few = 3", "few IN (1, 2)", "few IS NULL", "NOT few = 1"],
    "LABEL_LIST": ["array_has_any(tags, ['t1'])", "NOT array_has_all(tags, ['t1', 't2'])"],
    "NGRAM": ["contains(text, 'number 77')"],
    "ZONEMAP": ["zoned < 100", "zoned IS NULL"],
    "BLOOMFILTER": ["hashed = 77", "hashed IS NULL"],
}


def column(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if i % 997 == 5 else each for i, each in enumerate(values)], kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose indices are of two segments each."""
    path = tmp_path_factory.mktemp("prewarm") / "a.lance"
    numbers = np.random.default_rng(1).permutation(NUM_ROWS).tolist()
    whole = pa.table(
        {
            "id": column(numbers, pa.int64()),
            "few": column([each % 7 for each in numbers], pa.int64()),
            "tags": column([[f"t{each % 5}"] for each in numbers], pa.list_(pa.string())),
            "text": column([f"number {each}" for each in numbers], pa.string()),
            "zoned": column(list(range(NUM_ROWS)), pa.int64()),
            "hashed": column(numbers, pa.int64()),
        }
    )
    theirs = lance.write_dataset(whole.slice(0, 15_000), str(path))
    for kind, name in KINDS.items():
        theirs.create_scalar_index(name, kind, name=kind)
    lance.write_dataset(whole.slice(15_000), str(path), mode="append")
    lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=0)
    return path


def open_counted(folder: Path, session: Session) -> tuple[Dataset, CountingStore]:
    store = CountingStore(open_store(str(folder)))
    return Dataset(session, open_snapshot(session.scheduler_for(store))), store


def index_reads(store: CountingStore) -> list[str]:
    return [path for path, _, _ in store.ranges if path.startswith("_indices/")]


@pytest.mark.parametrize("kind", KINDS)
def test_filters_after_it_read_nothing_of_the_index(folder: Path, kind: str) -> None:
    dataset, store = open_counted(folder, Session())
    done = dataset.prewarm(kind)
    assert done.is_complete
    assert (done.stopped, done.skipped, done.rows) == (None, (), 0)
    assert done.bytes_read > 0
    theirs = lance.dataset(str(folder))
    for each in FILTERS[kind]:
        store.reset()
        assert dataset.count_rows(each) == theirs.count_rows(each)
        assert index_reads(store) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_time_nothing_is_read(folder: Path, kind: str) -> None:
    dataset, _ = open_counted(folder, Session())
    first, second = dataset.prewarm(kind), dataset.prewarm(kind)
    assert (second.bytes_read, second.store_requests) == (0, 0)
    assert (second.partitions, second.nbytes) == (first.partitions, first.nbytes)


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "LABEL_LIST", "NGRAM"])
def test_it_stops_and_says_so_where_the_budget_ends(folder: Path, kind: str) -> None:
    ample = Session()
    dataset, _ = open_counted(folder, ample)
    needed = dataset.prewarm(kind).nbytes
    session = Session(ample.cache_stats.used_bytes - needed // 2)
    told: list[Prewarmed] = []
    small, _ = open_counted(folder, session)
    done = small.prewarm(kind, progress=told.append)
    assert done.stopped is not None
    assert str(session.cache_stats.budget_bytes) in done.stopped
    assert done.partitions < done.partitions_total
    assert done.nbytes < needed
    assert [each.partitions for each in told] == sorted({each.partitions for each in told})
    assert session.cache_stats.used_bytes <= session.cache_stats.budget_bytes


def test_partitions_of_it_are_refused(folder: Path) -> None:
    dataset, _ = open_counted(folder, Session())
    with pytest.raises(InvalidRequestError, match="has no partitions"):
        dataset.prewarm("BTREE", [0])


def test_it_stops_at_its_deadline(folder: Path) -> None:
    dataset, _ = open_counted(folder, Session())
    with pytest.raises(DeadlineExceededError):
        dataset.prewarm("BTREE", deadline=Deadline.after(0))


def test_segments_that_filters_do_not_use_are_told(tmp_path: Path) -> None:
    write_unknown_index(tmp_path / "a.lance", pa.table({"t": ["a b c"] * 10}))
    dataset, _ = open_counted(tmp_path / "a.lance", Session())
    done = dataset.prewarm("unknown_idx")
    assert done.is_complete
    assert ["not supported" in each.reason for each in done.skipped] == [True]


def test_what_is_damaged_is_an_error(tmp_path: Path) -> None:
    theirs = lance.write_dataset(pa.table({"a": range(100)}), str(tmp_path / "a.lance"))
    theirs.create_scalar_index("a", "BTREE", name="a")
    (lost,) = (tmp_path / "a.lance" / "_indices").glob("*/page_data.lance")
    lost.unlink()
    dataset, _ = open_counted(tmp_path / "a.lance", Session())
    with pytest.raises(CorruptFileError, match=r"page_data.lance"):
        dataset.prewarm("a")
