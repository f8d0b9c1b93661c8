"""Vector indices whose files follow compactions: the same codes, under the rows' new addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.budget import LEAST_BYTES, LEAST_GRAPH_BYTES
from lance_core.index.vector.segment import VectorSegment
from tests.committed import opened
from tests.compacted import compacted
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lance_core.table.snapshot import Snapshot

pytestmark = pytest.mark.interop

DIMENSION, NUM_ROWS = 16, 1200
CENTRES = np.random.default_rng(5).standard_normal((30, DIMENSION))
NOISE = np.random.default_rng(6).standard_normal((NUM_ROWS + 300, DIMENSION))
VECTORS = (CENTRES[np.arange(NUM_ROWS + 300) % 30] + 0.3 * NOISE).astype(np.float32)
KINDS = [
    ("IVF_FLAT", "l2"),
    ("IVF_PQ", "cosine"),
    ("IVF_SQ", "dot"),
    ("IVF_RQ", "l2"),
    ("IVF_HNSW_FLAT", "cosine"),
    ("IVF_HNSW_SQ", "l2"),
    ("IVF_HNSW_PQ", "l2"),
]
NUM_PARTITIONS = 4


def rows(first: int, last: int) -> pa.Table:
    vectors = pa.array(VECTORS[first:last].ravel())
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "vec": pa.FixedSizeListArray.from_arrays(vectors, DIMENSION),
        }
    )


def indexed(root: Path, kind: str, metric: str, **options: Any) -> None:
    dataset: Any = lance.write_dataset(
        rows(0, NUM_ROWS), str(root), max_rows_per_file=300, **options
    )
    more = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    dataset.create_index("vec", kind, metric=metric, num_partitions=NUM_PARTITIONS, **more)


class Readers:
    """Both readers of a table, opened once: opening takes longer than a search."""

    def __init__(self, root: Path) -> None:
        self._theirs: Any = lance.dataset(str(root))
        self._ours = lance_core.open_dataset(root)

    def nearest(self, query: np.ndarray, k: int, **more: Any) -> tuple[pa.Table, pa.Table]:
        """Return what pylance and we find in all partitions, id and distance."""
        columns = ["id", "_distance"]
        wanted = {"column": "vec", "q": query, "k": k, "nprobes": NUM_PARTITIONS, **more}
        theirs = self._theirs.to_table(columns=columns, nearest=wanted)
        ours = self._ours.search(query, k, columns=columns, nprobes=NUM_PARTITIONS, **more)
        return theirs, ours


def distances(root: Path, ids: Sequence[int], query: np.ndarray) -> dict[int, float]:
    """Return the distances of all rows, by both readers alike."""
    theirs, ours = (
        dict(zip(each["id"].to_pylist(), each["_distance"].to_pylist(), strict=True))
        for each in Readers(root).nearest(query, len(ids))
    )
    assert sorted(ours) == sorted(ids) == sorted(theirs)
    np.testing.assert_allclose(
        [ours[each] for each in ids], [theirs[each] for each in ids], rtol=1e-4, atol=1e-4
    )
    return ours


def recall(root: Path, ids: Sequence[int], metric: str) -> float:
    """Return the smaller of both readers' shares of the nearest rows, after a refinement."""
    vectors, found = VECTORS[list(ids)].astype(np.float64), []
    readers = Readers(root)
    for place in range(0, len(ids), 97):
        query = VECTORS[ids[place]] + np.float32(0.01)
        if metric == "l2":
            exact = ((vectors - query) ** 2).sum(1)
        else:
            norms = np.linalg.norm(vectors, axis=1) if metric == "cosine" else 1.0
            exact = -(vectors @ query) / norms
        expected = {ids[n] for n in np.argsort(exact)[:10]}
        both = readers.nearest(query, 10, refine_factor=5)
        found.append([len(expected & set(each["id"].to_pylist())) / 10 for each in both])
    return float(np.min(np.mean(found, axis=0)))


def stored_rows(snapshot: Snapshot) -> int:
    """Return how many rows the files of all segments hold."""
    found = 0
    for each in snapshot.indices:
        if not each.is_system:
            place = snapshot.index_place(each)
            found += VectorSegment.open(place, each.uuid, each.files).num_rows
    return found


@pytest.mark.parametrize(("kind", "metric"), KINDS)
@pytest.mark.parametrize("is_deferred", [False, True], ids=["at once", "after a deferral"])
def test_rows_are_found_where_they_are_now_by_the_codes_that_they_had(
    tmp_path: Path, kind: str, metric: str, is_deferred: bool
) -> None:
    indexed(tmp_path, kind, metric)
    ids = [number for number in range(NUM_ROWS) if number % 5 != 2]
    query, is_graph = VECTORS[7], "HNSW" in kind
    everything = {} if is_graph else distances(tmp_path, range(NUM_ROWS), query)
    lance.dataset(str(tmp_path)).delete("id % 5 = 2")
    if is_deferred:  # which pylance cannot search where there is a graph
        lance.dataset(str(tmp_path)).optimize.compact_files(
            target_rows_per_fragment=600, defer_index_remap=True
        )
        snapshot = lance_core.open_dataset(tmp_path).remap_indices().trim_reuse_index().snapshot
        assert len(snapshot.indices) == 1
    else:
        snapshot = compacted(tmp_path, "remap")
    assert stored_rows(snapshot) == len(ids)
    assert recall(tmp_path, ids, metric) > 0.97
    if not is_graph:  # a walk need not reach every row
        found = distances(tmp_path, ids, query)
        # RaBitQ estimates a partition's last rows, behind the last whole block, more closely
        np.testing.assert_allclose(
            [found[each] for each in ids],
            [everything[each] for each in ids],
            rtol=0.02 if kind == "IVF_RQ" else 0,
        )
    assert verified(tmp_path) == []
    dataset: Any = lance.dataset(str(tmp_path))
    dataset.insert(rows(NUM_ROWS, NUM_ROWS + 300))
    dataset.optimize.optimize_indices()
    dataset = lance.dataset(str(tmp_path))
    dataset.delete("id = 9")
    dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
    ids = [each for each in [*ids, *range(NUM_ROWS, NUM_ROWS + 300)] if each != 9]
    assert recall(tmp_path, ids, metric) > 0.9


def test_rows_of_several_vectors_follow(tmp_path: Path) -> None:
    lists = [VECTORS[n : n + n % 3].tolist() for n in range(400)]
    kind = pa.list_(pa.list_(pa.float32(), DIMENSION))
    table = pa.table({"id": pa.array(range(400)), "vec": pa.array(lists, kind)})
    dataset: Any = lance.write_dataset(table, str(tmp_path), max_rows_per_file=100)
    dataset.create_index("vec", "IVF_FLAT", metric="cosine", num_partitions=2)
    lance.dataset(str(tmp_path)).delete("id % 7 = 1")
    snapshot = compacted(tmp_path, "remap")
    assert stored_rows(snapshot) == sum(len(v) for n, v in enumerate(lists) if n % 7 != 1)
    for key in (2, 5, 395):
        wanted: Any = {"column": "vec", "q": VECTORS[key : key + 2], "k": 1, "nprobes": 2}
        theirs = lance.dataset(str(tmp_path)).to_table(columns=["id", "_distance"], nearest=wanted)
        assert theirs["id"].to_pylist() == [key]
        ours = lance_core.open_dataset(tmp_path).search(VECTORS[key : key + 2], 1, nprobes=2)
        assert ours["id"].to_pylist() == [key]


def test_an_index_of_stable_row_ids_keeps_its_files(tmp_path: Path) -> None:
    indexed(tmp_path, "IVF_SQ", "l2", enable_stable_row_ids=True)
    lance.dataset(str(tmp_path)).delete("id % 5 = 2")
    (before,) = opened(tmp_path).indices
    (after,) = compacted(tmp_path, "remap").indices
    assert after.uuid == before.uuid
    assert recall(tmp_path, [n for n in range(NUM_ROWS) if n % 5 != 2], "l2") > 0.97


def test_indices_are_written_anew_in_the_memory_that_is_given(tmp_path: Path) -> None:
    indexed(tmp_path, "IVF_HNSW_SQ", "l2")
    lance.dataset(str(tmp_path)).delete("id % 5 = 2")
    dataset = lance_core.open_dataset(tmp_path)
    files = {each for each in tmp_path.rglob("*") if each.is_file()}
    with pytest.raises(InvalidRequestError, match=f"give at least {LEAST_GRAPH_BYTES}"):
        dataset.compact(indices="remap", memory_bytes=LEAST_GRAPH_BYTES - 1)
    assert {each for each in tmp_path.rglob("*") if each.is_file()} == files
    after = dataset.compact(indices="remap", memory_bytes=LEAST_GRAPH_BYTES)
    assert stored_rows(after.snapshot) == NUM_ROWS * 4 // 5


def test_a_segment_follows_a_deferral_in_the_memory_that_is_given(tmp_path: Path) -> None:
    indexed(tmp_path, "IVF_SQ", "l2")
    lance.dataset(str(tmp_path)).delete("id % 5 = 2")
    dataset = lance_core.open_dataset(tmp_path).compact(indices="defer")
    with pytest.raises(InvalidRequestError, match=f"give at least {LEAST_BYTES}"):
        dataset.remap_indices(memory_bytes=LEAST_BYTES - 1)
    after = dataset.remap_indices(memory_bytes=LEAST_BYTES)
    assert stored_rows(after.snapshot) == NUM_ROWS * 4 // 5
