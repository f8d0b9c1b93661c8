"""What a query reads from the store: the rows it needs, the tails of their files, little more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import Dataset
from lance_core.file.reader import LanceFileReader
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

DIMENSION = 64
NUM_INDEXED = 20_000
NUM_PARTITIONS = 50
NUM_SUB_VECTORS = 16
CHUNK_BYTES = 8 << 10
TAIL_BYTES = 64 << 10
WASTE = 1.1
KINDS: dict[str, tuple[dict[str, Any], int]] = {  # options, and bytes of a row beside its address
    "IVF_FLAT": ({}, 4 * DIMENSION),
    "IVF_PQ": ({"num_sub_vectors": NUM_SUB_VECTORS}, NUM_SUB_VECTORS),
    "IVF_SQ": ({}, DIMENSION),
    "IVF_RQ": ({"num_bits": 5}, DIMENSION // 8 + 20 + DIMENSION // 2),
    "IVF_HNSW_FLAT": ({}, 4 * DIMENSION),
    "IVF_HNSW_SQ": ({}, DIMENSION),
    "IVF_HNSW_PQ": ({"num_sub_vectors": NUM_SUB_VECTORS}, NUM_SUB_VECTORS),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("reads") / "t.lance", "IVF_PQ")


def write_table(folder: Path, kind: str) -> Path:
    generator = np.random.default_rng(3)

    def rows(first: int, count: int) -> pa.Table:
        vectors = generator.standard_normal((count, DIMENSION)).astype(np.float32)
        return pa.table(
            {
                "id": pa.array(generator.permutation(count) + first),
                "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
            }
        )

    dataset = lance.write_dataset(rows(0, NUM_INDEXED), str(folder))
    dataset.create_index("vec", kind, num_partitions=NUM_PARTITIONS, **KINDS[kind][0])
    dataset.insert(rows(NUM_INDEXED, 500))
    dataset.delete(f"id % 10 = 3 and id < {NUM_INDEXED + 250}")
    return folder


@pytest.fixture
def opened(root: Path) -> tuple[Dataset, CountingStore]:
    return open_counted(root)


def open_counted(root: Path) -> tuple[Dataset, CountingStore]:
    store = CountingStore(open_store(str(root)))
    session = Session()
    return Dataset(session, open_snapshot(session.scheduler_for(store))), store


def query() -> np.ndarray:
    return np.random.default_rng(9).standard_normal(DIMENSION).astype(np.float32)


def paths_read(store: CountingStore) -> set[str]:
    return {path for path, _, _ in store.ranges}


def test_opening_reads_the_manifest_only(opened, root):
    _, store = opened
    (path,) = paths_read(store)
    assert path.startswith("_versions/")
    assert store.bytes_read <= min((root / path).stat().st_size, TAIL_BYTES)


def test_a_second_query_reads_nothing_of_the_index(opened):
    dataset, store = opened
    dataset.search(query(), 10, nprobes=5, columns=["id"])
    store.reset()
    dataset.search(query(), 10, nprobes=5, columns=["id"])
    assert not [path for path in paths_read(store) if path.startswith("_indices/")]


def test_more_probes_read_only_the_partitions_that_are_new(opened):
    dataset, store = opened
    dataset.search(query(), 10, nprobes=5, columns=["id"])
    store.reset()
    dataset.search(query(), 10, nprobes=6, columns=["id"])
    of_index = [end - start for path, start, end in store.ranges if path.startswith("_indices/")]
    largest = 3 * NUM_INDEXED // NUM_PARTITIONS * (8 + NUM_SUB_VECTORS)
    assert 0 < sum(of_index) <= largest + 4 * CHUNK_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_a_cold_query_reads_little_more_than_it_needs(kind: str, root: Path, tmp_path: Path):
    folder = root if kind == "IVF_PQ" else write_table(tmp_path / "t.lance", kind)
    dataset, store = open_counted(folder)
    store.reset()
    num_probes, k, factor = 5, 10, 5
    result = dataset.search(query(), k, nprobes=num_probes, refine_factor=factor, columns=["id"])
    assert result.num_rows == k
    by_path: dict[str, int] = {}
    for path, start, end in store.ranges:
        by_path[path] = by_path.get(path, 0) + end - start
    needed = needed_bytes(dataset, folder, by_path, num_probes, k * factor, KINDS[kind][1])
    assert sum(by_path.values()) <= WASTE * needed, (by_path, needed)


def needed_bytes(
    dataset: Dataset,
    root: Path,
    by_path: dict[str, int],
    num_probes: int,
    num_refined: int,
    row_bytes: int,
) -> float:
    """Count tails, header, probed partitions, uncovered vectors and whole chunks of rows."""
    tails = sum(
        min((root / path).stat().st_size, TAIL_BYTES) for path in by_path if "_del" not in path
    )
    (column,) = dataset._engine._preparer._columns.values()
    (description,) = column.descriptions
    segment = column.bound(description).partitions.segment
    header = segment.centroids.nbytes + segment.quantizer.nbytes
    order, _ = segment.rank(query())
    probed = int(segment.lengths[order[:num_probes]].sum())
    share = probed / segment.num_rows
    uncovered = 500 * DIMENSION * 4
    deletions = sum(path.stat().st_size for path in (root / "_deletions").iterdir())
    taken = num_refined * DIMENSION * 4 + 10 * CHUNK_BYTES
    rows = probed * (8 + row_bytes) + share * graph_bytes(root)
    return tails + header + rows + uncovered + deletions + taken


def graph_bytes(root: Path) -> float:
    """Return what the links of all rows take in the file."""
    (path,) = root.glob("_indices/*/index.idx")
    reader = LanceFileReader.open_path(path)
    links = ["__vector_id", "__neighbors"]
    if links[0] not in reader.schema.names:
        return 0
    return reader.stored_bytes([reader.target(name) for name in links])(0, reader.num_rows)
