"""Tables whose vector index both libraries keep, and what must hold after each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import lance
import numpy as np
import pyarrow as pa

import lance_core
from lance_core.index.vector.build.stored_rows import stored_rows
from lance_core.index.vector.segment import VectorSegment
from tests.committed import opened
from tests.neighbour_checks import assert_same_neighbours, exact_distances, scale_of
from tests.vector_matrix import KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DIMENSION = 32
NUM_CENTRES = 12
NUM_ROWS, NUM_MORE = 1600, 300
RECALL = {"FLAT": 0.9, "SQ": 0.8, "PQ": 0, "RQ": 0}
"""Of ten rows in one query; codes of few bits promise nothing for one."""

K = 10


def draw(start: int, count: int, dtype: type[np.generic] = np.float32) -> NDArray[Any]:
    """Return the vectors of the rows with the ids ``start ..``, shape ``(count, d)``."""
    generator = np.random.default_rng(start + 1)
    centres = 3 * np.random.default_rng(0).standard_normal((NUM_CENTRES, DIMENSION))
    found = centres[generator.integers(NUM_CENTRES, size=count)]
    found = found + generator.standard_normal(found.shape)
    if dtype == np.uint8:
        found = np.clip(found * 20 + 128, 0, 255)
    return found.astype(dtype)


def insert(
    path: Path,
    start: int,
    count: int,
    dtype: type[np.generic] = np.float32,
    *,
    stable: bool = False,
    version: Literal["2.0", "2.1", "2.2"] = "2.1",
) -> None:
    """Add rows by pylance, in fragments of 800 rows; ``id`` counts on from ``start``."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(draw(start, count, dtype).ravel()), 32)
    lance.write_dataset(
        pa.table({"id": np.arange(start, start + count), "v": vectors}),
        str(path),
        mode="append" if path.exists() else "create",
        max_rows_per_file=800,
        enable_stable_row_ids=stable,
        data_storage_version=version,
    )


def table(path: Path) -> lance_core.Dataset:
    return lance_core.open_dataset(path)


def coverage(path: Path) -> list[list[int]]:
    """Return the live fragments that each segment names, by what the manifest says."""
    snapshot = table(path).snapshot
    segments = [each for each in snapshot.indices if not each.is_system]
    live = snapshot.fragments_by_id
    return [sorted(i for i in each.fragment_bitmap or () if i in live) for each in segments]


def opened_segments(path: Path) -> list[VectorSegment]:
    """Open all segments that have files."""
    snapshot = opened(path)
    return [
        VectorSegment.open(snapshot.index_place(each), each.uuid, each.files)
        for each in snapshot.indices
        if not each.is_system and each.fragment_bitmap
    ]


def stored_ids(path: Path) -> list[int]:
    """Return the row ids in the files of all segments, ascending."""
    parts = [rows.row_ids for each in opened_segments(path) for rows in stored_rows(each)]
    found: list[int] = np.sort(np.concatenate(parts)).tolist()
    return found


def live_ids(path: Path) -> list[int]:
    """Return the row ids of all live rows, ascending, as pylance tells them."""
    ids = lance.dataset(str(path)).to_table(columns=[], with_row_id=True)["_rowid"]
    return sorted(ids.to_pylist())


def check_answers(path: Path, metric: str, *, least_recall: float, tolerance: float = 1e-5) -> None:
    """Check that both libraries find the same by the index, and nearly what is there."""
    ours, theirs = table(path), lance.dataset(str(path))
    for number, query in enumerate(_stored_vectors(path, 3)):
        options = {"nprobes": 1000 if number == 0 else number}
        found = ours.search(query, K, columns=["id"], nprobes=options["nprobes"])
        nearest = {"column": "v", "q": query, "k": K, **options}
        scanner = theirs.scanner(columns=["id", "_distance"], nearest=nearest)
        assert "ANNSubIndex" in scanner.explain_plan(verbose=True)
        expected = scanner.to_table()
        scale = scale_of(expected["_distance"].to_numpy(), query.astype(np.float32), metric)
        assert_same_neighbours(found, expected, scale=scale, tolerance=tolerance)
    assert recall(path, metric, 1) >= least_recall


def recall(path: Path, metric: str, num_queries: int) -> float:
    """Return which part of the ten nearest rows our search of all partitions finds."""
    rows = lance.dataset(str(path)).to_table(columns=["id", "v"])
    vectors, ids = _vectors(rows), rows["id"].to_numpy()
    num_found = 0
    for query in _stored_vectors(path, num_queries):
        found = table(path).search(query, K, columns=["id"], nprobes=1000)["id"].to_pylist()
        nearest = ids[np.argsort(distances_to(vectors, query, metric))[:K]]
        num_found += len(set(nearest.tolist()) & set(found))
    return num_found / (K * num_queries)


def _stored_vectors(path: Path, count: int) -> NDArray[Any]:
    """Return the vectors of some rows."""
    vectors = _vectors(lance.dataset(str(path)).to_table(columns=["v"]))
    chosen: NDArray[Any] = vectors[np.random.default_rng(9).integers(len(vectors), size=count)]
    return chosen


def _vectors(rows: pa.Table) -> NDArray[Any]:
    return np.stack(rows["v"].combine_chunks().to_numpy(zero_copy_only=False))


def distances_to(vectors: NDArray[Any], query: NDArray[Any], metric: str) -> NDArray[Any]:
    """Return the exact distances of all vectors."""
    if metric == "hamming":
        bits: NDArray[Any] = np.unpackbits(vectors ^ query, axis=1).sum(axis=1)
        return bits
    return exact_distances(vectors.astype(np.float32), query.astype(np.float32), metric)


def create(path: Path, kind: str, metric: str, writer: str = "ours", **given: Any) -> None:
    options = {"metric": metric, "num_partitions": 4, **KINDS[kind], **given}
    dataset: Any = table(path) if writer == "ours" else lance.dataset(str(path))
    dataset.create_index("v", index_type(kind), **options)


def index_type(kind: str) -> str:
    return kind.split(" ", maxsplit=1)[0]


def optimize(path: Path, writer: str, num_merged: int = 1) -> None:
    if writer == "ours":
        table(path).optimize_indices(num_segments_to_merge=num_merged)
    else:
        lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=num_merged)


def compact(path: Path, *, defers: bool = False) -> None:
    lance.dataset(str(path)).optimize.compact_files(
        target_rows_per_fragment=5000, defer_index_remap=defers
    )


def check(path: Path, kind: str, metric: str) -> None:
    least = RECALL[index_type(kind).rpartition("_")[2]]
    check_answers(path, metric, least_recall=least, tolerance=1e-4 if "RQ" in kind else 1e-5)


def dtype_of(kind: str) -> type[np.generic]:
    return np.uint8 if kind.endswith("bytes") else np.float32
