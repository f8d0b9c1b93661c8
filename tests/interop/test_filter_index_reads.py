"""What filters read that scalar indices answer, and what becomes of damaged indices."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset import Dataset
from lance_core.errors import CancelledByClientError, CorruptFileError
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.query.deadline import Deadline
from lance_core.query.request import ScanQuery, VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION = 20_000, 8


def rows(first: int, last: int) -> pa.Table:
    generator = np.random.default_rng(first)
    vectors = generator.standard_normal((last - first, DIMENSION)).astype(np.float32)
    return pa.table(
        {
            "id": np.arange(first, last),
            "number": generator.permutation(np.arange(first, last)),
            "kind": [f"k{i % 20}" for i in range(first, last)],
            "text": [f"{i:08d} some words of a text" for i in range(first, last)],
            "free": np.arange(first, last) % 10,
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index-reads") / "t.lance"
    dataset = lance.write_dataset(rows(0, NUM_ROWS), str(folder), max_rows_per_file=9_000)
    dataset.create_scalar_index("number", "BTREE")
    dataset.create_scalar_index("kind", "BITMAP")
    dataset.create_scalar_index("text", "NGRAM")
    dataset.create_index("vec", "IVF_FLAT", num_partitions=8)
    dataset.delete("id % 10 = 7")
    return folder


def counted(root: Path) -> tuple[Dataset, CountingStore]:
    """Open a dataset through a store that is not mapped and records what is read."""
    session = Session()
    store = CountingStore(open_store(str(root)))
    return Dataset(session, open_snapshot(session.scheduler_for(store))), store


def data_bytes(store: CountingStore) -> int:
    return sum(end - start for path, start, end in store.ranges if path.startswith("data/"))


def index_bytes(store: CountingStore) -> int:
    return sum(end - start for path, start, end in store.ranges if path.startswith("_indices/"))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("number < 5000", lambda number, kind: number < 5000),
        ("kind = 'k3' AND NOT number < 100", lambda n, kind: (kind == 3) & (n >= 100)),
        (
            "kind IN ('k1', 'k2') OR number = 4",
            lambda n, kind: (kind == 1) | (kind == 2) | (n == 4),
        ),
        ("number IS NULL", lambda number, kind: number < 0),
    ],
)
def test_counting_by_indices_reads_no_data(root, text, holds):
    dataset, store = counted(root)
    live = lance.dataset(str(root)).to_table(columns=["id", "number"])
    store.reset()
    expected = holds(live["number"].to_numpy(), live["id"].to_numpy() % 20).sum()
    assert dataset.count_rows(text) == expected
    assert data_bytes(store) == 0
    store.reset()
    assert dataset.count_rows(text) == expected
    assert store.ranges == []


def test_only_rows_that_an_index_leaves_open_are_read(root):
    dataset, store = counted(root)
    dataset.scan(limit=1).read_all()
    dataset.count_rows("number = 77 AND free >= 0")
    store.reset()
    assert dataset.count_rows("number < 40 AND free < 5") > 0
    assert 0 < data_bytes(store) <= 40 * 4096
    store.reset()
    assert dataset.count_rows("contains(text, '00001234')") == 1
    assert 0 < data_bytes(store) <= 64 * 1024
    store.reset()
    dataset.count_rows("kind = 'k1' OR free = 3")
    assert data_bytes(store) > NUM_ROWS / 2  # four bits a row


def test_a_scan_reads_other_columns_of_rows_that_pass(root):
    dataset, store = counted(root)
    dataset.scan(limit=1).read_all()
    store.reset()
    found = dataset.scan(["id", "text"], filter="number < 20").read_all()
    assert found.num_rows == dataset.count_rows("number < 20") > 0
    assert data_bytes(store) <= 20 * 12_000  # a text takes its chunk
    assert index_bytes(store) > 0
    store.reset()
    scanned = dataset.scan(["id", "text"], filter="number < 20", use_index=False).read_all()
    assert scanned.equals(found)
    assert data_bytes(store) > 2 * NUM_ROWS
    assert index_bytes(store) == 0


def test_prefilters_by_index_are_resident_after_the_first(root):
    request = VectorQuery(
        vectors=np.ones((1, DIMENSION), np.float32), filter="number < 9000", k=5, max_probes=8
    )
    dataset = lance_core.open_dataset(str(root), session=Session(few_rows=0))
    dataset.run(VectorQuery(vectors=request.vectors, k=5))
    with pytest.raises(NotResidentError):
        dataset.run(request, resident_only=True)
    waited = dataset.run(request).table
    assert dataset.run(request, resident_only=True).table.equals(waited)
    exact = dataset.search(np.ones(DIMENSION), 5, filter="number < 9000", use_index=False)
    assert waited["id"].to_pylist() == exact["id"].to_pylist()
    assert "IndexLookup: test=number < 9000, index=[number_idx]" in dataset.explain(request)


def test_a_search_of_indices_is_left_when_nobody_waits_for_it(root):
    dataset = lance_core.open_dataset(str(root))
    with pytest.raises(CancelledByClientError):
        dataset.count_rows("number < 9000", deadline=Deadline(is_cancelled=lambda: True))


def test_a_fast_search_leaves_out_rows_that_the_scalar_index_does_not_cover(root, tmp_path):
    folder = tmp_path / "t.lance"
    shutil.copytree(root, folder)
    lance.dataset(str(folder)).insert(rows(NUM_ROWS, NUM_ROWS + 100))
    dataset = lance_core.open_dataset(str(folder))
    options: dict[str, Any] = {"filter": "number >= 19000", "columns": ["id"]}
    every = dataset.scan(**options).read_all()["id"].to_numpy()
    covered = dataset.scan(**options, fast_search=True).read_all()["id"].to_numpy()
    assert (every.max(), covered.max()) == (NUM_ROWS + 99, every[every < NUM_ROWS].max())
    assert dataset.count_rows("number >= 19000") == len(every)
    query = np.ones(DIMENSION)
    near = dataset.search(query, 5_000, **options, fast_search=True)["id"].to_numpy()
    assert sorted(near) == covered.tolist()
    request = VectorQuery(
        vectors=query[None].astype(np.float32), filter="number >= 19000", fast_search=True
    )
    assert "fragments_left_out=1" in dataset.explain(request)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-30])


def remove(file: Path) -> None:
    file.unlink()


def garble(file: Path) -> None:
    file.write_bytes(b"\xff" * file.stat().st_size)


@pytest.mark.parametrize("damage", [cut, remove, garble])
@pytest.mark.parametrize("name", ["page_lookup.lance", "page_data.lance"])
def test_a_damaged_index_fails_only_filters_that_ask_it(root, tmp_path, name, damage):
    folder = tmp_path / "t.lance"
    shutil.copytree(root, folder)
    (file,) = folder.glob(f"_indices/*/{name}")
    kept = file.read_bytes()
    damage(file)
    dataset = lance_core.open_dataset(str(folder))
    text, query = "number < 1000", np.ones(DIMENSION)
    for _ in range(2):
        with pytest.raises(CorruptFileError):
            dataset.count_rows(text)
        with pytest.raises(CorruptFileError):
            dataset.search(query, 5, filter=text)
    assert dataset.count_rows("kind = 'k1'") > 0
    scanned = dataset.scan(["id"], filter=text, use_index=False).read_all()
    assert dataset.count_rows(text, use_index=False) == scanned.num_rows > 0
    assert len(dataset.search(query, 5, filter=text, use_index=False)) == 5
    file.write_bytes(kept)  # what was damaged is looked at again
    assert dataset.scan(["id"], filter=text).read_all().equals(scanned)


def test_an_index_of_a_newer_version_is_not_asked_and_said_to_be(root, tmp_path):
    folder = tmp_path / "t.lance"
    shutil.copytree(root, folder)
    dataset = lance.dataset(str(folder))
    (old,) = [index for index in dataset.describe_indices() if index.name == "kind_idx"]
    segment = old.segments[0]
    newer = lance.Index(
        uuid=segment.uuid,
        name="kind_idx",
        fields=list(old.fields),
        dataset_version=dataset.version,
        fragment_ids=set(segment.fragment_ids),  # type: ignore[arg-type]  # pylance takes it
        index_version=100,
    )
    operation = lance.LanceOperation.CreateIndex([newer], [])
    lance.LanceDataset.commit(str(folder), operation, read_version=dataset.version)
    ours = lance_core.open_dataset(str(folder))
    assert ours.count_rows("kind = 'k3'") == NUM_ROWS / 20
    plan = ours.explain(ScanQuery(filter="kind = 'k3'"))
    assert "IndexLookup" not in plan
    assert "of kind_idx: index version 100 is newer than" in plan
