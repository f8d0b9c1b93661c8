"""Models of vector indices: trained, written into bytes, and refused where these are damaged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.index.segment_files import SegmentFiles
from lance_core.index.vector.build.given_parameters import vector_parameters
from lance_core.index.vector.build.graph_rows import row_space
from lance_core.index.vector.build.model import PqCoding, RabitCoding, SqCoding
from lance_core.index.vector.build.model_bytes import model_from_bytes, model_to_bytes
from lance_core.index.vector.build.segment_builder import SegmentBuilder
from lance_core.index.vector.build.train import train
from lance_core.index.vector.build.usable import UsableVectors, usable_vectors
from lance_core.index.vector.metric import Metric
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from tests.index_contents import file_contents

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.vector.build.model import VectorModel

DIMENSION = 16
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4, "num_bits": 4},
    "IVF_SQ": {},
    "IVF_RQ": {"rotation_type": "matrix", "num_bits": 3},
    "IVF_HNSW_SQ": {"m": 8, "ef_construction": 20},
}


def vectors_of(num_rows: int, dtype: Any = np.float32) -> UsableVectors:
    drawn = np.random.default_rng(4).standard_normal((num_rows, DIMENSION)).astype(dtype)
    return UsableVectors(drawn, np.arange(num_rows, dtype=np.uint64))


def trained(kind: str, value_type: pa.DataType | None = None, **given: Any) -> VectorModel:
    column = pa.list_(pa.float32() if value_type is None else value_type, DIMENSION)
    parameters = vector_parameters(kind, column, {"num_partitions": 3, **KINDS[kind], **given})
    return train(vectors_of(800), parameters, 800)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_same_sample_gives_the_same_model(kind: str) -> None:
    one, other = trained(kind), trained(kind)
    assert model_to_bytes(one) == model_to_bytes(other)
    assert one.num_partitions == 3
    assert one.loss is not None


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_model_comes_back_from_its_bytes(kind: str) -> None:
    model = trained(kind)
    data = model_to_bytes(model)
    copy = model_from_bytes(data)
    assert model_to_bytes(copy) == data
    np.testing.assert_array_equal(copy.centroids, model.centroids)
    assert (copy.graph, copy.metric, copy.value_type) == (
        model.graph,
        model.metric,
        model.value_type,
    )
    if isinstance(model.coding, SqCoding):
        assert copy.coding == model.coding
    if isinstance(model.coding, PqCoding):
        assert isinstance(copy.coding, PqCoding)
        np.testing.assert_array_equal(copy.coding.codebook, model.coding.codebook)
    if isinstance(model.coding, RabitCoding):
        assert isinstance(copy.coding, RabitCoding)
        np.testing.assert_array_equal(
            np.asarray(copy.coding.rotation), np.asarray(model.coding.rotation)
        )


@pytest.mark.parametrize("kind", list(KINDS))
def test_damaged_bytes_are_refused_or_give_a_sound_model(kind: str) -> None:
    data = model_to_bytes(trained(kind))
    generator = np.random.default_rng(6)
    with pytest.raises(InvalidRequestError, match="no model"):
        model_from_bytes(b"")
    for length in generator.integers(0, len(data), 50).tolist():
        with pytest.raises(InvalidRequestError):
            model_from_bytes(data[:length])
    num_refused = 0
    for at in generator.integers(0, min(len(data), 700), 300).tolist():
        damaged = bytearray(data)
        damaged[at] ^= int(generator.integers(1, 256))
        try:
            model = model_from_bytes(bytes(damaged))
        except InvalidRequestError:
            num_refused += 1
        else:
            assert model.centroids.ndim == 2
    assert num_refused > 50


def test_centroids_of_narrow_floats_are_rounded_before_vectors_are_coded() -> None:
    model = trained("IVF_PQ", pa.float16())
    assert isinstance(model.coding, PqCoding)
    for each in (model.centroids, model.coding.codebook):
        np.testing.assert_array_equal(each, each.astype(np.float16).astype(np.float32))


def test_given_parts_are_kept() -> None:
    rotation = bytes(range(8))
    centroids = np.ones((2, DIMENSION), np.float32)
    column = pa.list_(pa.float32(), DIMENSION)
    given = {"ivf_centroids": centroids, "rotation": rotation}
    model = train(vectors_of(1), vector_parameters("IVF_RQ", column, given), 1)
    assert isinstance(model.coding, RabitCoding)
    assert model.coding.rotation == rotation
    np.testing.assert_array_equal(model.centroids, centroids)
    assert model.loss is None


def test_too_few_vectors_train_nothing() -> None:
    column = pa.list_(pa.float32(), DIMENSION)
    parameters = vector_parameters("IVF_PQ", column, {"num_sub_vectors": 4})
    with pytest.raises(InvalidRequestError, match="trained with 256 vectors at least"):
        train(vectors_of(255), parameters, 255)


def column_of(rows: list[Any], value_type: pa.DataType) -> pa.Array:
    return pa.array(rows, pa.list_(value_type, 2))


@pytest.mark.parametrize("value_type", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("metric", [Metric.L2, Metric.COSINE])
def test_vectors_without_a_place_are_left_out(value_type: pa.DataType, metric: Metric) -> None:
    rows = [[3, 4], None, [np.nan, 1], [1, np.inf], [0, 0], [None, 1], [0, -2]]
    column = column_of([[9, 9], *rows], value_type).slice(1)
    found = usable_vectors(column, np.arange(10, 17, dtype=np.uint64), metric)
    if metric is Metric.L2:
        assert found.row_ids.tolist() == [10, 14, 16]
        assert found.values.tolist() == [[3, 4], [0, 0], [0, -2]]
    else:
        assert found.row_ids.tolist() == [10, 16]
        np.testing.assert_allclose(found.values, np.array([[0.6, 0.8], [0, -1]]), rtol=1e-3)
    assert found.values.dtype == value_type.to_pandas_dtype()
    assert found.numbers.dtype == np.float32


def test_every_vector_of_a_list_is_a_row() -> None:
    lists: list[Any] = [[[1, 0], [0, 2]], None, [], [[3, 0], None, [0, 0]], [[0, 1]]]
    column = pa.array([*lists, [[7, 7]]], pa.list_(pa.list_(pa.float32(), 2))).slice(0, 5)
    found = usable_vectors(column, np.arange(5, dtype=np.uint64), Metric.COSINE)
    assert found.row_ids.tolist() == [0, 0, 3, 4]
    assert found.values.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_wide_floats_beyond_narrow_ones_are_left_out() -> None:
    column = column_of([[1e300, 0], [1, 2]], pa.float64())
    found = usable_vectors(column, np.arange(2, dtype=np.uint64), Metric.L2)
    assert found.values.tolist() == [[1, 2]]


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_files_hold_the_same_whatever_memory_there_is(kind: str, metric: str) -> None:
    model = trained(kind, metric=metric)
    vectors = vectors_of(800)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.values.ravel()), DIMENSION)
    shuffled = np.random.default_rng(1).permutation(800)
    written = []
    for memory_bytes, order in ((1 << 26, np.arange(800)), (20_000, shuffled)):
        store = MemoryStore()
        out = SegmentFiles(store, "a", FileVersion.of("2.1"))
        with SegmentBuilder(model, out, memory_bytes) as builder:
            for rows in np.array_split(order, 5):
                builder.add(column.take(pa.array(rows)), vectors.row_ids[rows])
            builder.finish()
        written.append(contents(store, out))
    assert written[0] == written[1]


def contents(
    store: MemoryStore, out: SegmentFiles
) -> dict[str, tuple[pa.Table, dict[str, str], list[bytes]]]:
    files = {each.path: each.size for each in out.finished}
    assert set(files) == {"index.idx", "auxiliary.idx"}
    scheduler = RangeScheduler(store)
    return {name: file_contents(scheduler, f"a/{name}", size) for name, size in files.items()}


@pytest.mark.parametrize(
    "column_type", [pa.list_(pa.float32(), DIMENSION + 1), pa.list_(pa.float64(), DIMENSION)]
)
def test_vectors_of_another_type_than_the_model_are_refused(column_type: pa.DataType) -> None:
    out = SegmentFiles(MemoryStore(), "a", FileVersion.of("2.1"))
    with (
        SegmentBuilder(trained("IVF_FLAT"), out, 1 << 20) as builder,
        pytest.raises(TypeMismatchError, match="train a model on it"),
    ):
        builder.add(pa.nulls(3, column_type), np.arange(3, dtype=np.uint64))


def test_a_model_without_centroids_is_refused() -> None:
    model = replace(trained("IVF_FLAT"), centroids=np.zeros((0, DIMENSION), np.float32))
    with pytest.raises(InvalidRequestError, match="no centroids"):
        model_from_bytes(model_to_bytes(model))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_segment_of_no_rows_has_all_its_partitions(kind: str) -> None:
    out = SegmentFiles(MemoryStore(), "a", FileVersion.of("2.1"))
    with SegmentBuilder(trained(kind), out, 1 << 20) as builder:
        details = builder.finish()
    assert len(out.finished) == 2
    assert details.index_version == (2 if kind == "IVF_RQ" else 1)


@pytest.mark.parametrize("kind", list(KINDS))
def test_vectors_of_any_size_are_written(kind: str) -> None:
    column = pa.list_(pa.float32(), DIMENSION)
    large: NDArray[np.float32] = vectors_of(40).values.copy()
    large[::2] *= np.float32(1e30)
    large[1::4] *= np.float32(1e-30)
    large[3] = large[7]
    for metric in ("l2", "cosine", "dot"):
        given = {"num_partitions": 3, "metric": metric, **KINDS[kind]}
        parameters = vector_parameters(kind, column, given)
        array = pa.FixedSizeListArray.from_arrays(pa.array(large.ravel()), DIMENSION)
        usable = usable_vectors(array, np.arange(40, dtype=np.uint64), parameters.metric)
        model = train(usable, parameters, 40)
        out = SegmentFiles(MemoryStore(), "a", FileVersion.of("2.1"))
        with SegmentBuilder(model, out, 1 << 24) as builder:
            builder.add(array, np.arange(40, dtype=np.uint64))
            builder.finish()
        assert len(usable) == 40
        assert len(out.finished) == 2


@pytest.mark.parametrize("scale", [1e19, 1e30, 3.3e38])
@pytest.mark.parametrize("metric", ["l2", "dot"])
def test_models_of_huge_vectors_are_numbers_and_compare_codes_without_a_warning(
    scale: float, metric: str
) -> None:
    drawn = np.random.default_rng(0).uniform(-scale, scale, (600, DIMENSION)).astype(np.float32)
    sample = UsableVectors(drawn, np.arange(600, dtype=np.uint64))
    given = {"num_partitions": 3, "metric": metric, "num_sub_vectors": 4, "num_bits": 4}
    column = pa.list_(pa.float32(), DIMENSION)
    model = train(sample, vector_parameters("IVF_HNSW_PQ", column, given), 600)
    assert isinstance(model.coding, PqCoding)
    assert np.isfinite(model.centroids).all()
    assert np.isfinite(model.coding.codebook).all()
    table = row_space(model).table
    wide = model.coding.codebook.astype(np.float64)
    gaps = wide[:, :, None] - wide[:, None]
    wanted = (gaps**2).sum(axis=3) if metric == "l2" else -(wide @ wide.transpose(0, 2, 1))
    most = float(np.finfo(np.float32).max)  # what is beyond is infinite
    found = table.astype(np.float64).clip(-most, most)
    np.testing.assert_allclose(found, wanted.clip(-most, most), rtol=1e-4, atol=1e-6 * most)
    codes = row_space(replace(model, coding=SqCoding(-scale, scale)))
    assert codes.step > 0
