"""Segments that we build are searched and maintained by pylance, which answers as we do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.file.reader import LanceFileReader
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from tests.built_segment import commit_by_pylance, train_on, vector_table, write_segment
from tests.multivector_tables import draw_queries, write_lists
from tests.neighbour_checks import assert_same_neighbours, scale_of
from tests.vector_matrix import KINDS, METRICS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

DIMENSION = 32
NUM_ROWS = 1_600
OF_FLOATS = [kind for kind in KINDS if not kind.endswith("bytes")]
OF_BYTES = [kind for kind in KINDS if kind.endswith("bytes")]
VERSIONS: tuple[Literal["2.0", "2.1", "2.2"], ...] = ("2.0", "2.1", "2.2")


def type_of(kind: str) -> str:
    return kind.partition(" ")[0]


def draw(num_rows: int, dtype: type[np.generic], seed: int = 3) -> NDArray[Any]:
    """Draw vectors around twenty centres, bytes as well."""
    generator = np.random.default_rng(seed)
    centres = 3 * generator.standard_normal((20, DIMENSION))
    vectors = centres[generator.integers(20, size=num_rows)]
    vectors += generator.standard_normal(vectors.shape)
    if dtype == np.uint8:
        vectors = np.clip(vectors * 20 + 128, 0, 255)
    return vectors.astype(dtype)


def built(
    path: Path,
    kind: str,
    metric: str,
    vectors: NDArray[Any],
    version: Literal["2.0", "2.1", "2.2"] = "2.1",
    **given: Any,
) -> None:
    """Write a table of two fragments and an index over them."""
    lance.write_dataset(
        vector_table(vectors),
        str(path),
        max_rows_per_file=len(vectors) // 2,
        data_storage_version=version,
    )
    wanted = {"metric": metric, "num_partitions": 6, **KINDS[kind], **given}
    model = train_on(path, type_of(kind), wanted)
    commit_by_pylance(path, write_segment(path, model, version))


def check_answers(path: Path, queries: NDArray[Any], metric: str, tolerance: float) -> None:
    ours, theirs = lance_core.open_dataset(str(path)), lance.dataset(str(path))
    for number, query in enumerate(queries):
        nprobes = 1 + number % 6
        found = ours.search(query, 10, columns=["id"], nprobes=nprobes)
        nearest = {"column": "v", "q": query, "k": 10, "nprobes": nprobes}
        expected = theirs.to_table(columns=["id", "_distance"], nearest=nearest)
        scale = scale_of(expected["_distance"].to_numpy(), query.astype(np.float32), metric)
        assert_same_neighbours(found, expected, scale=scale, tolerance=tolerance)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", OF_FLOATS)
def test_pylance_finds_in_our_segments_what_we_find(tmp_path: Path, kind: str, metric: str) -> None:
    version = VERSIONS[(OF_FLOATS.index(kind) + METRICS.index(metric)) % 3]
    built(tmp_path / "t", kind, metric, draw(NUM_ROWS, np.float32), version)
    tolerance = 1e-4 if "RQ" in kind else 1e-5
    check_answers(tmp_path / "t", draw(NUM_ROWS + 6, np.float32)[-6:], metric, tolerance)
    stats = lance.dataset(str(tmp_path / "t")).stats.index_stats("v_idx")
    assert (stats["index_type"], stats["num_indexed_rows"]) == (type_of(kind), NUM_ROWS)
    assert stats["num_unindexed_rows"] == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", OF_BYTES)
def test_pylance_finds_in_our_segments_of_bytes_what_we_find(
    tmp_path: Path, kind: str, version: Literal["2.0", "2.1", "2.2"]
) -> None:
    built(tmp_path / "t", kind, "hamming", draw(NUM_ROWS, np.uint8), version)
    check_answers(tmp_path / "t", draw(NUM_ROWS + 6, np.uint8)[-6:], "hamming", 0)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("IVF_FLAT", "cosine"),
        ("IVF_PQ", "l2"),
        ("IVF_SQ", "dot"),
        ("IVF_RQ 5 bit", "l2"),
        ("IVF_HNSW_PQ", "cosine"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_pylance_finds_what_we_find_among_narrow_and_wide_floats(
    tmp_path: Path, kind: str, metric: str, dtype: type[np.generic]
) -> None:
    built(tmp_path / "t", kind, metric, draw(NUM_ROWS, dtype))
    # pylance takes centroids from queries in float16.
    tolerance = 6e-3 if dtype == np.float16 else 1e-4 if "RQ" in kind else 1e-5
    check_answers(tmp_path / "t", draw(NUM_ROWS + 6, dtype)[-6:], metric, tolerance)


@pytest.mark.parametrize("num_bits", [1, 4])
@pytest.mark.parametrize("metric", METRICS)
def test_codes_rotated_by_a_matrix_are_found_by_pylance(
    tmp_path: Path, metric: str, num_bits: int
) -> None:
    vectors = draw(NUM_ROWS, np.float32)
    built(
        tmp_path / "t",
        "IVF_RQ 5 bit",
        metric,
        vectors,
        num_bits=num_bits,
        rotation_type="matrix",
    )
    check_answers(tmp_path / "t", vectors[:6] + np.float32(0.1), metric, 1e-4)


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_pylance_reads_a_rotation_matrix_in_the_type_of_the_column(
    tmp_path: Path, dtype: type[np.generic], is_given: bool
) -> None:
    vectors = draw(NUM_ROWS, dtype)
    matrix = np.linalg.qr(np.random.default_rng(1).standard_normal((vectors.shape[1],) * 2))[0]
    given: dict[str, Any] = {"rotation": matrix.astype(np.float32)} if is_given else {}
    built(tmp_path / "t", "IVF_RQ 5 bit", "l2", vectors, rotation_type="matrix", **given)
    tolerance = 6e-3 if dtype == np.float16 else 1e-4
    check_answers(tmp_path / "t", draw(NUM_ROWS + 6, dtype)[-6:], "l2", tolerance)
    theirs = lance.dataset(str(tmp_path / "t"))
    more = theirs.to_table().slice(0, 100)
    ids = pa.array(np.arange(NUM_ROWS, NUM_ROWS + 100), more["id"].type)
    theirs.insert(more.set_column(0, "id", ids))
    theirs.optimize.optimize_indices()
    check_answers(tmp_path / "t", draw(NUM_ROWS + 6, dtype)[-6:], "l2", tolerance)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ 5 bit", "IVF_HNSW_SQ"])
def test_lists_of_vectors_have_a_row_for_each(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    vectors = write_lists(path, 1_000, seed=5)
    index_type = type_of(kind)
    options = {"num_sub_vectors": 4} if index_type == "IVF_PQ" else KINDS[kind]
    model = train_on(path, index_type, {"num_partitions": 4, **options})
    commit_by_pylance(path, write_segment(path, model))
    ours, theirs = lance_core.open_dataset(str(path)), lance.dataset(str(path))
    for query in draw_queries(vectors, 6)[:4]:
        nearest = {"column": "v", "q": list(query), "k": 10, "nprobes": 4}
        expected = theirs.to_table(columns=["id", "_distance"], nearest=nearest)
        found = ours.search(list(query), 10, columns=["id"], nprobes=4)
        assert_same_neighbours(found, expected, scale=10, tolerance=1e-5)


def odd_vectors(dtype: type[np.generic]) -> pa.Table:
    """Return vectors between which there are null ones, NaN, infinities and zeros."""
    vectors = draw(NUM_ROWS, dtype)
    vectors[3], vectors[5, 7], vectors[9, 0], vectors[11, 1] = 0, np.nan, np.inf, -np.inf
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.ravel()),
        DIMENSION,
        mask=pa.array(np.arange(NUM_ROWS) % 50 == 1),
    )
    return pa.table({"id": np.arange(NUM_ROWS), "v": column})


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("IVF_FLAT", "cosine"),
        ("IVF_FLAT", "l2"),
        ("IVF_RQ 5 bit", "dot"),
        ("IVF_HNSW_SQ", "cosine"),
    ],
)
def test_the_rows_left_out_are_those_that_pylance_leaves_out(
    tmp_path: Path, kind: str, metric: str, dtype: type[np.generic]
) -> None:
    table = odd_vectors(dtype)
    counts = []
    for name in ("ours", "theirs"):
        path = tmp_path / name
        lance.write_dataset(table, str(path), max_rows_per_file=500)
        index_type, given = type_of(kind), {"num_partitions": 2, **KINDS[kind]}
        if name == "ours":
            model = train_on(path, index_type, {"metric": metric, **given})
            commit_by_pylance(path, write_segment(path, model))
        else:
            lance.dataset(str(path)).create_index("v", index_type, metric=metric, **given)
        nearest = {"column": "v", "q": np.ones(DIMENSION), "k": NUM_ROWS, "nprobes": 2}
        found = lance.dataset(str(path)).to_table(columns=["id"], nearest=nearest)
        counts.append(sorted(found["id"].to_pylist()))
    assert counts[0] == counts[1]
    zero = [3] if metric != "cosine" else []
    left = set(range(NUM_ROWS)) - {3, 5, 9, 11} - set(range(1, NUM_ROWS, 50))
    assert counts[0] == sorted([*left, *zero])


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ 5 bit", "IVF_HNSW_FLAT"])
def test_pylance_maintains_our_segments(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    built(path, kind, "l2", draw(NUM_ROWS, np.float32))
    dataset = lance.dataset(str(path))
    dataset.insert(vector_table(draw(100, np.float32, seed=4)))
    dataset.optimize.optimize_indices()
    dataset.delete("id % 7 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=100_000)
    stats = lance.dataset(str(path)).stats.index_stats("v_idx")
    assert stats["num_unindexed_rows"] == 0
    check_answers(path, draw(NUM_ROWS, np.float32)[:6], "l2", 1e-4 if "RQ" in kind else 1e-5)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_RQ 5 bit", "IVF_HNSW_SQ"])
def test_partitions_without_rows_are_searched_too(tmp_path: Path, kind: str) -> None:
    path, vectors = tmp_path / "t", draw(NUM_ROWS, np.float32)
    lance.write_dataset(vector_table(vectors), str(path))
    centroids = np.concatenate([vectors[:2], vectors[:2] + 1_000, vectors[2:4]])
    given = {"ivf_centroids": centroids, **KINDS[kind]}
    model = train_on(path, type_of(kind), given)
    commit_by_pylance(path, write_segment(path, model))
    np.testing.assert_array_equal(model.centroids, centroids)
    check_answers(path, vectors[:6] + np.float32(0.1), "l2", 1e-4 if "RQ" in kind else 1e-5)


def columns_of(path: Path, name: str) -> dict[str, tuple[str, bool]]:
    scheduler = RangeScheduler(open_store(str(path)))
    (index,) = lance.dataset(str(path)).describe_indices()
    folder = f"_indices/{index.segments[0].uuid}/{name}"
    schema = LanceFileReader.open(scheduler, folder).schema
    return {each.name: (each.logical_type, each.nullable) for each in schema.fields}


@pytest.mark.parametrize("kind", list(KINDS))
def test_columns_are_those_that_pylance_writes(tmp_path: Path, kind: str) -> None:
    is_bytes = kind.endswith("bytes")
    vectors = draw(600, np.uint8 if is_bytes else np.float32)
    metric = "hamming" if is_bytes else "cosine"
    built(tmp_path / "ours", kind, metric, vectors)
    lance.write_dataset(vector_table(vectors), str(tmp_path / "theirs"))
    lance.dataset(str(tmp_path / "theirs")).create_index(
        "v", type_of(kind), metric=metric, num_partitions=2, **KINDS[kind]
    )
    for name in ("auxiliary.idx", "index.idx"):
        assert columns_of(tmp_path / "ours", name) == columns_of(tmp_path / "theirs", name)
