"""With a model that pylance trained we code the same vectors as it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pytest

from lance_core.index.vector.build.model import GraphParameters
from lance_core.index.vector.build.model_bytes import model_from_bytes, model_to_bytes
from lance_core.index.vector.build.model_form import index_details, index_type_of
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.proto import index_pb2
from lance_core.table.snapshot import open_snapshot
from tests.built_segment import open_built, sorted_rows, vector_table, write_segment
from tests.multivector_tables import write_lists
from tests.opened_segment import build_index, open_segment
from tests.vector_matrix import KINDS, METRICS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.index.vector.build.stored_rows import CodedRows
    from lance_core.index.vector.segment import VectorSegment

pytestmark = pytest.mark.interop

CODED = [kind for kind in KINDS if "HNSW" not in kind and not kind.endswith("bytes")]
ROUNDED = 1e-3
"""Such a part of the codes may differ: rounding decides, and pylance trains by chance."""
CODES = ("__pq_code", "__sq_code", "_rabit_codes", "__blocked_ex_codes")


def both(path: Path, theirs: VectorSegment) -> tuple[CodedRows, CodedRows]:
    """Return the rows that we code with pylance's model, and its own, all in the same order."""
    built = write_segment(path, stored_model(theirs))
    ours, expected = sorted_rows(open_built(path, built)), sorted_rows(theirs)
    np.testing.assert_array_equal(ours.row_ids, expected.row_ids)
    np.testing.assert_array_equal(ours.partitions, expected.partitions)
    assert list(ours.columns) == list(expected.columns)
    return ours, expected


def check_columns(
    ours: CodedRows, expected: CodedRows, most_different: float, tolerance: float = 1e-4
) -> None:
    """Check codes, of which such a part may differ where rounding decides, and numbers."""
    rows_differ = np.zeros(len(ours), np.bool_)
    for name, values in ours.columns.items():
        if name in CODES:
            differ = values != expected.columns[name]
            rows_differ |= differ.any(axis=1)
            assert differ.mean() <= most_different, (name, differ.sum())
    for name, values in ours.columns.items():
        if name not in CODES:
            close = values[~rows_differ], expected.columns[name][~rows_differ]
            np.testing.assert_allclose(*close, rtol=1e-3, atol=tolerance * np.abs(close[1]).max())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", CODED)
def test_codes_equal_those_of_pylance(tmp_path: Path, kind: str, metric: str) -> None:
    index_type, options = kind.partition(" ")[0], KINDS[kind]
    built = build_index(tmp_path, index_type, metric, dimension=32, options=options)
    ours, expected = both(tmp_path, open_segment(built.store()).segment)
    check_columns(ours, expected, ROUNDED)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("num_bits", range(1, 10))
def test_codes_of_all_widths_equal_those_of_pylance(
    tmp_path: Path, num_bits: int, metric: str
) -> None:
    built = build_index(
        tmp_path,
        "IVF_RQ",
        metric,
        num_rows=500,
        dimension=(64, 24, 72)[(num_bits + METRICS.index(metric)) % 3],
        options={"num_bits": num_bits},
    )
    ours, expected = both(tmp_path, open_segment(built.store()).segment)
    check_columns(ours, expected, ROUNDED)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("IVF_FLAT", "cosine"),
        ("IVF_PQ", "l2"),
        ("IVF_PQ", "dot"),
        ("IVF_SQ", "cosine"),
        ("IVF_RQ 5 bit", "l2"),
        ("IVF_RQ 5 bit", "dot"),
    ],
)
def test_codes_of_narrow_and_wide_floats_are_nearly_those_of_pylance(
    tmp_path: Path, kind: str, metric: str, dtype: Any
) -> None:
    index_type, options = kind.partition(" ")[0], KINDS[kind]
    built = build_index(tmp_path, index_type, metric, dimension=32, dtype=dtype, options=options)
    ours, expected = both(tmp_path, open_segment(built.store()).segment)
    if kind == "IVF_FLAT":
        np.testing.assert_array_equal(ours.columns["flat"], expected.columns["flat"])
    # pylance takes centroids from vectors in float16, and rounds there.
    is_narrow = dtype == np.float16
    check_columns(ours, expected, 5e-3 if is_narrow else ROUNDED, 3e-3 if is_narrow else 1e-4)


def test_bytes_lie_in_the_partitions_of_pylance(tmp_path: Path) -> None:
    vectors = np.random.default_rng(2).integers(0, 256, (900, 16), np.uint8)
    dataset = lance.write_dataset(vector_table(vectors), str(tmp_path), max_rows_per_file=500)
    dataset.create_index("v", "IVF_FLAT", metric="hamming", num_partitions=5)
    segment = open_segment(open_store(str(tmp_path))).segment
    built = write_segment(tmp_path, stored_model(segment))
    ours, expected = sorted_rows(open_built(tmp_path, built)), sorted_rows(segment)
    # Of centroids that are as near, pylance does not always take the first.
    own = bits_to(vectors, segment.centroids, ours)
    np.testing.assert_array_equal(own, bits_to(vectors, segment.centroids, expected))


def bits_to(
    vectors: NDArray[np.uint8], centroids: NDArray[np.float32], rows: CodedRows
) -> NDArray[np.int64]:
    """Return how many bits each row differs from its centroid by, in the order of the rows."""
    order = np.argsort(rows.row_ids)
    chosen = centroids.astype(np.uint8)[rows.partitions[order]]
    differ = np.bitwise_xor(rows.columns["flat"][order], chosen)
    np.testing.assert_array_equal(rows.columns["flat"][order], vectors)
    counts: NDArray[np.int64] = np.unpackbits(differ, axis=1).sum(axis=1).astype(np.int64)
    return counts


def test_lists_of_vectors_are_coded_as_pylance_codes_them(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_lists(path, 400, seed=8)
    lance.dataset(str(path)).create_index("v", "IVF_SQ", metric="cosine", num_partitions=3)
    segment = open_segment(open_store(str(path))).segment
    ours, expected = both(path, segment)
    check_columns(ours, expected, ROUNDED)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_model_is_the_same_from_files_and_from_bytes(tmp_path: Path, kind: str) -> None:
    index_type, options = kind.partition(" ")[0], KINDS[kind]
    if kind.endswith("bytes"):
        vectors = np.random.default_rng(2).integers(0, 256, (900, 16), np.uint8)
        lance.write_dataset(vector_table(vectors), str(tmp_path))
        lance.dataset(str(tmp_path)).create_index(
            "v", index_type, metric="hamming", num_partitions=3
        )
    else:
        graph = {"m": 8, "ef_construction": 30, "max_level": 5} if "HNSW" in kind else {}
        build_index(tmp_path, index_type, "cosine", options={**options, **graph})
    model = stored_model(open_segment(open_store(str(tmp_path))).segment)
    assert index_type_of(model) == index_type
    if "HNSW" in kind and not kind.endswith("bytes"):
        assert model.graph == GraphParameters(8, 30, 5)
    assert model.loss is not None
    for copy in (
        model_from_bytes(model_to_bytes(model)),
        stored_model(open_built(tmp_path, write_segment(tmp_path, model))),
    ):
        assert model_to_bytes(copy) == model_to_bytes(model)
        assert (copy.graph, copy.loss) == (model.graph, model.loss)
        np.testing.assert_array_equal(copy.centroids, model.centroids)
        assert copy.centroids.dtype == model.centroids.dtype
    (index,) = lance.dataset(str(tmp_path)).describe_indices()
    assert index_details(model).type_url == index.type_url


def test_details_are_those_of_pylance_but_for_hints(tmp_path: Path) -> None:
    for number, (kind, options) in enumerate(KINDS.items()):
        if kind.endswith("bytes"):
            continue
        path = tmp_path / str(number)
        metric = METRICS[number % 3]
        build_index(path, kind.partition(" ")[0], metric, options=options)
        (entry,) = open_snapshot(
            RangeScheduler(open_store(str(path)))
        ).manifest.index_section.indices
        expected = index_pb2.VectorIndexDetails.FromString(entry.index_details.value)
        expected.ClearField("runtime_hints")
        details = index_details(stored_model(open_segment(open_store(str(path))).segment))
        assert index_pb2.VectorIndexDetails.FromString(details.value) == expected
        assert details.index_version == entry.index_version
        assert details.type_url == entry.index_details.type_url
