"""What filtered queries and batches read, and what they find in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset import Dataset
from lance_core.errors import CancelledByClientError, DeadlineExceededError
from lance_core.index.vector.bound import BoundSegment
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.kernels import exact, exact_batch, masks
from lance_core.query import vector_prepare
from lance_core.query.deadline import Deadline
from lance_core.query.request import VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.row_filter import RowFilter
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION, NUM_PARTITIONS = 20_000, 32, 40
FEW, MANY, HALF = "number < 40", "number < 300", "number < 10000"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filter-reads") / "t.lance"
    generator = np.random.default_rng(8)
    vectors = generator.standard_normal((NUM_ROWS, DIMENSION)).astype(np.float32)
    table = pa.table(
        {
            "id": np.arange(NUM_ROWS),
            "number": generator.permutation(NUM_ROWS),
            "text": [f"{i:040d}" for i in range(NUM_ROWS)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    dataset = lance.write_dataset(table, str(folder), max_rows_per_file=7_000)
    dataset.create_index(
        "vec", "IVF_PQ", num_partitions=NUM_PARTITIONS, num_sub_vectors=8, sample_rate=16
    )
    return folder


def request(seeds: Any = (0,), **given: Any) -> VectorQuery:
    vectors = [np.random.default_rng(seed).standard_normal(DIMENSION) for seed in seeds]
    options = {"k": 5, "columns": ("id",), "min_probes": 4, "max_probes": 4, **given}
    return VectorQuery(vectors=np.array(vectors, np.float32), **options)


def counted(root: Path, **session: Any) -> tuple[Dataset, CountingStore]:
    """Open a dataset through a store that is not mapped and records what is read."""
    shared = Session(**session)
    store = CountingStore(open_store(str(root)))
    return Dataset(shared, open_snapshot(shared.scheduler_for(store))), store


def index_ranges(store: CountingStore) -> list[tuple[str, int, int]]:
    return [each for each in store.ranges if each[0].startswith("_indices/")]


def data_bytes(store: CountingStore) -> int:
    return sum(end - start for path, start, end in store.ranges if path.startswith("data/"))


def test_a_batch_reads_each_partition_once(root):
    dataset, store = counted(root, cache_bytes=0)
    dataset.run(request())  # the index is opened
    store.reset()
    dataset.run(request())
    alone = index_ranges(store)
    store.reset()
    dataset.run(request([0] * 6, batched=True))
    assert sorted(index_ranges(store)) == sorted(alone)


def reads_of_partitions(monkeypatch) -> list[list[int]]:
    """Return a list that will hold the partitions of each read."""
    reads: list[list[int]] = []
    read = BoundSegment._read

    def noted_read(bound: BoundSegment, partitions: Any) -> Any:
        reads.append(list(partitions))
        return read(bound, partitions)

    monkeypatch.setattr(BoundSegment, "_read", noted_read)
    return reads


def test_a_batch_reads_the_partitions_of_its_queries_in_one_go(root, monkeypatch):
    dataset, _ = counted(root)
    dataset.run(request())
    dataset.session.cache.clear()
    reads = reads_of_partitions(monkeypatch)
    for seed in range(8):
        dataset.run(request([seed]))
    of_singles = sorted(partition for read in reads for partition in read)
    assert len(reads) > 1
    dataset.session.cache.clear()
    reads.clear()
    dataset.run(request(range(8), batched=True))
    (of_batch,) = reads
    assert sorted(of_batch) == of_singles


def test_partitions_that_are_searched_late_are_read_some_at_a_time(root, monkeypatch):
    dataset, _ = counted(root, few_rows=0)
    dataset.run(request(filter=MANY))
    dataset.session.cache.clear()
    reads = reads_of_partitions(monkeypatch)
    found = dataset.run(request(k=200, filter=MANY, min_probes=1, max_probes=None))
    assert found.stats.partitions_probed > 15
    assert len(reads) <= 6
    assert sum(map(len, reads)) <= 2 * found.stats.partitions_probed


def test_a_filter_reads_its_columns_and_few_vectors_once(root):
    dataset, store = counted(root)
    dataset.run(request())
    store.reset()
    found = dataset.run(request(filter=FEW))
    assert found.stats.exact
    assert index_ranges(store) == []
    column, vectors = 8 * NUM_ROWS, 40 * DIMENSION * 4
    assert data_bytes(store) <= 1.1 * (column + vectors) + 3 * 40 * 4096
    store.reset()
    dataset.run(request([1], filter=FEW, columns=()))
    assert store.ranges == []


def test_a_filter_is_evaluated_once_whatever_its_spelling(root):
    dataset, store = counted(root, few_rows=0)
    dataset.run(request(filter=HALF))
    store.reset()
    for seed in range(3):
        dataset.run(request([seed], filter=" number  <10000", columns=(), k=9))
    assert data_bytes(store) == 0


def test_filtered_queries_are_resident_after_the_first(root):
    for few_rows in (0, 20_000):
        for given in ({"filter": HALF}, {"filter": FEW}, {"filter": HALF, "use_index": False}):
            dataset = lance_core.open_dataset(str(root), session=Session(few_rows=few_rows))
            dataset.run(request())
            asked = request(min_probes=None, max_probes=None, **given)
            with pytest.raises(NotResidentError):
                dataset.run(asked, resident_only=True)
            waited = dataset.run(asked).table
            assert dataset.run(asked, resident_only=True).table.equals(waited)
            dataset.session.cache.clear()
            with pytest.raises(NotResidentError):
                dataset.run(asked, resident_only=True)


def test_a_query_that_has_to_wait_is_not_read_again(root, monkeypatch):
    dataset = lance_core.open_dataset(str(root))
    dataset.run(request())
    texts: list[str] = []

    class Noted(RowFilter):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            texts.append(self.text)

    monkeypatch.setattr(vector_prepare, "RowFilter", Noted)
    with pytest.raises(NotResidentError):
        dataset.run(request(filter=FEW), resident_only=True)
    dataset.run(request(filter=FEW))
    assert len(texts) == 1


def test_a_postfilter_needs_nothing_in_memory(root):
    dataset = lance_core.open_dataset(str(root))
    dataset.run(request())
    waited = dataset.run(request(filter=HALF, prefilter=False), resident_only=True)
    assert waited.table.num_rows <= 5


@pytest.mark.parametrize(
    ("deadline", "error"),
    [
        (Deadline.after(-1), DeadlineExceededError),
        (Deadline(is_cancelled=lambda: True), CancelledByClientError),
    ],
)
def test_a_filter_is_left_when_nobody_waits_for_it(root, deadline, error):
    dataset = lance_core.open_dataset(str(root))
    with pytest.raises(error, match="filtering rows"):
        dataset.run(request(filter=HALF), deadline)


def test_filtered_queries_and_batches_compile_no_kernel_anew(root):
    dataset = lance_core.open_dataset(str(root), session=Session(few_rows=100))
    kernels: list[Any] = [exact.score_addresses, exact_batch._scan_pages_for_all, masks.copy_bits]
    options: list[dict[str, Any]] = [{"filter": FEW}, {"filter": HALF}, {"use_index": False}]
    for each in options:
        dataset.run(request(range(3), batched=True, **each))
    before = [len(kernel.signatures) for kernel in kernels]
    for each in options:
        dataset.run(request(range(3, 6), batched=True, lower_bound=0.1, **each))
    assert [len(kernel.signatures) for kernel in kernels] == before


def test_versions_keep_their_answers(root, tmp_path):
    dataset = lance.write_dataset(
        lance.dataset(str(root)).to_table(limit=3_000), str(tmp_path / "t.lance")
    )
    dataset.create_index("vec", "IVF_FLAT", num_partitions=4)
    path = str(tmp_path / "t.lance")
    session = Session(few_rows=0)
    old = lance_core.open_dataset(path, session=session)
    asked = request(filter=HALF, k=20)
    before = old.run(asked).table
    dataset.delete("number < 2000")
    dataset.update({"number": "number + 9000"}, where="number < 5000")
    new = lance_core.open_dataset(path, session=session)
    assert old.run(asked).table.equals(before)
    assert (
        lance_core.open_dataset(path, old.version, session=session).run(asked).table.equals(before)
    )
    found = new.run(request(filter=HALF, k=20, columns=("number",))).table["number"].to_numpy()
    assert ((found >= 2000) & (found < 10_000)).all()
