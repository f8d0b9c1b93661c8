from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.given_parameters import vector_parameters
from lance_core.index.vector.build.model import GraphParameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOATS = pa.list_(pa.float32(), 32)
BYTES = pa.list_(pa.uint8(), 32)
EYE = np.eye(32)
CENTROIDS = np.ones((3, 32))


def test_what_is_not_asked_for_is_as_in_pylance() -> None:
    flat = vector_parameters("ivf_flat", FLOATS, {"metric": None})
    assert (flat.index_type, flat.metric, flat.sample_rate) == ("IVF_FLAT", "l2", 256)
    assert (flat.max_iterations, flat.graph, flat.num_partitions) == (50, None, None)
    assert vector_parameters("IVF_RQ", FLOATS, {}).num_bits == 5
    assert vector_parameters("IVF_PQ", FLOATS, {}).num_bits == 8
    assert vector_parameters("IVF_HNSW_SQ", FLOATS, {}).graph == GraphParameters(20, 150, 7)
    assert vector_parameters("IVF_FLAT", BYTES, {}).metric == "hamming"
    assert vector_parameters("IVF_FLAT", pa.list_(FLOATS), {}).metric == "cosine"
    assert vector_parameters("IVF_FLAT", FLOATS, {"metric": "Euclidean"}).metric == "l2"


@pytest.mark.parametrize(
    ("dimension", "num_bits", "num_sub_vectors"),
    [(128, 8, 8), (24, 8, 3), (20, 8, 1), (128, 4, 8), (24, 4, 6), (16, 4, 2)],
)
def test_sub_vectors_have_16_or_8_coordinates_where_these_fit(
    dimension: int, num_bits: int, num_sub_vectors: int
) -> None:
    column = pa.list_(pa.float32(), dimension)
    found = vector_parameters("IVF_PQ", column, {"num_bits": num_bits})
    assert found.num_sub_vectors == num_sub_vectors


@pytest.mark.parametrize(
    ("index_type", "given", "num_vectors", "num_partitions"),
    [
        ("IVF_FLAT", {}, 100, 1),
        ("IVF_FLAT", {}, 40_960, 10),
        ("IVF_SQ", {}, 81_920, 10),
        ("IVF_HNSW_SQ", {}, 1_000_000, 1),
        ("IVF_FLAT", {}, 1 << 25, 5792),
        ("IVF_FLAT", {"target_partition_size": 10}, 1_000, 100),
        ("IVF_FLAT", {"num_partitions": 50}, 20, 20),
        ("IVF_PQ", {"num_partitions": 50}, 5_000, 19),
        ("IVF_PQ", {"num_partitions": 50}, 10, 1),
        ("IVF_PQ", {"num_partitions": 600, "sample_rate": 3}, 1_500, 500),
        ("IVF_PQ", {"target_partition_size": 100}, 1_500, 15),
        ("IVF_PQ", {"target_partition_size": 5, "sample_rate": 10}, 1_500, 300),
        ("IVF_FLAT", {"ivf_centroids": CENTROIDS}, 1, 3),
    ],
)
def test_partitions_are_no_more_than_vectors_allow(
    index_type: str, given: dict[str, Any], num_vectors: int, num_partitions: int
) -> None:
    assert vector_parameters(index_type, FLOATS, given).partitions_of(num_vectors) == num_partitions


def test_samples_serve_all_that_is_trained() -> None:
    pq = vector_parameters("IVF_PQ", FLOATS, {"num_partitions": 10, "sample_rate": 100})
    assert pq.sample_size(1 << 20) == 25_600
    assert pq.sample_size(1_000) == 1_000
    flat = vector_parameters("IVF_FLAT", FLOATS, {"ivf_centroids": CENTROIDS})
    assert (flat.sample_size(1 << 20), flat.least_vectors, pq.least_vectors) == (1, 1, 256)
    assert vector_parameters("IVF_SQ", FLOATS, {}).sample_size(1 << 20) == 65_536


@pytest.mark.parametrize(
    ("index_type", "column", "given", "words"),
    [
        ("IVF", FLOATS, {}, "is none of IVF_FLAT"),
        ("IVF_FLAT", pa.int64(), {}, "takes columns of vectors"),
        ("IVF_FLAT", pa.list_(pa.int8(), 4), {}, "takes columns of vectors"),
        ("IVF_FLAT", FLOATS, {"num_bits": 8}, "no parameter 'num_bits'"),
        ("IVF_FLAT", FLOATS, {"m": 8}, "no parameter 'm'"),
        ("IVF_FLAT", FLOATS, {"metric": "hamming"}, "are compared by l2"),
        ("IVF_FLAT", FLOATS, {"metric": "manhattan"}, "is none of l2"),
        ("IVF_FLAT", BYTES, {"metric": "l2"}, "are compared by hamming"),
        ("IVF_SQ", BYTES, {}, "takes no vectors of bytes"),
        ("IVF_SQ", pa.list_(FLOATS), {"metric": "l2"}, "takes cosine"),
        ("IVF_FLAT", FLOATS, {"num_partitions": 0}, "it may be 1 to"),
        ("IVF_FLAT", FLOATS, {"num_partitions": 2, "ivf_centroids": CENTROIDS}, "are 3"),
        ("IVF_FLAT", FLOATS, {"ivf_centroids": np.ones((3, 4))}, "shape .any, 32."),
        ("IVF_FLAT", FLOATS, {"ivf_centroids": CENTROIDS * np.inf}, "finite numbers"),
        ("IVF_FLAT", FLOATS, {"ivf_centroids": [[1], [2, 3]]}, "is no array"),
        ("IVF_FLAT", BYTES, {"ivf_centroids": CENTROIDS}, "that uint8 holds"),
        ("IVF_PQ", FLOATS, {"num_bits": 5}, "have 4, 8 bits"),
        ("IVF_PQ", FLOATS, {"num_sub_vectors": 5}, "do not divide"),
        ("IVF_PQ", FLOATS, {"num_bits": 4, "num_sub_vectors": 1}, "even num_sub_vectors"),
        ("IVF_PQ", FLOATS, {"pq_codebook": np.ones((2, 256, 16))}, "give ivf_centroids too"),
        ("IVF_RQ", FLOATS, {"num_bits": 10}, "have 1, 2, 3"),
        ("IVF_RQ", pa.list_(pa.float32(), 20), {}, "multiple of 8"),
        ("IVF_RQ", FLOATS, {"rotation_type": "slow"}, "is fast or matrix"),
        ("IVF_RQ", FLOATS, {"rotation_type": "fast", "rotation": EYE}, "is fast or matrix"),
        ("IVF_RQ", FLOATS, {"rotation": b"123"}, "has 16 bytes, not 3"),
        ("IVF_HNSW_SQ", FLOATS, {"m": 3}, "it may be 4 to"),
        ("IVF_HNSW_SQ", FLOATS, {"m": 8, "ef_construction": 7}, "it may be 8 to"),
        ("IVF_HNSW_SQ", FLOATS, {"max_level": 0}, "it may be 1 to"),
        ("IVF_FLAT", FLOATS, {"max_iters": 0}, "it may be 1 to"),
    ],
)
def test_what_no_index_can_have_is_refused(
    index_type: str, column: pa.DataType, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        vector_parameters(index_type, column, given)


def test_parts_of_a_model_are_taken_as_they_are_given() -> None:
    codebook = np.arange(2 * 256 * 16).reshape(2, 256, 16)
    given = {"num_sub_vectors": 2, "ivf_centroids": CENTROIDS, "pq_codebook": codebook}
    pq = vector_parameters("IVF_PQ", FLOATS, given)
    assert pq.codebook is not None
    np.testing.assert_array_equal(pq.codebook, codebook)
    assert pq.least_vectors == 1
    assert vector_parameters("IVF_RQ", FLOATS, {"rotation": EYE}).rotation_type == "matrix"
    assert vector_parameters("IVF_RQ", FLOATS, {"rotation": bytes(16)}).rotation == bytes(16)


def lists(numbers: NDArray[np.generic]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), numbers.shape[-1])


def test_parts_of_a_model_are_taken_from_arrow_as_pylance_does() -> None:
    centroids = np.random.default_rng(1).random((3, 32))
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(centroids)
    sliced = lists(np.concatenate([CENTROIDS, centroids, CENTROIDS]))[3:6]
    for given in (
        *(lists(centroids.astype(kind)) for kind in ("f2", "f4", "f8")),
        *(tensors, sliced, pa.chunked_array([sliced]), pa.chunked_array([sliced[:1], sliced[1:]])),
    ):
        found = vector_parameters("IVF_FLAT", FLOATS, {"ivf_centroids": given}).centroids
        assert found is not None
        np.testing.assert_allclose(found, centroids, atol=1e-3)
    codebook = np.random.default_rng(1).random((2, 256, 16), dtype=np.float32)
    for book in (
        *(lists(codebook.reshape(-1, length)) for length in (16, 32, 4096)),
        pa.FixedShapeTensorArray.from_numpy_ndarray(codebook),
    ):
        wanted = {"num_sub_vectors": 2, "ivf_centroids": lists(centroids), "pq_codebook": book}
        taken = vector_parameters("IVF_PQ", FLOATS, wanted).codebook
        np.testing.assert_array_equal(taken, codebook)
    for numbers in ([[0, 255] * 16], np.full((1, 32), 7, "u8"), lists(np.ones((1, 32), "u1"))):
        assert (
            vector_parameters("IVF_FLAT", BYTES, {"ivf_centroids": numbers}).centroids is not None
        )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pa.array([[1.0] * 32, None], pa.list_(pa.float32(), 32)), "nulls in it"),
        (pa.array([[None] * 32], pa.list_(pa.float32(), 32)), "nulls in it"),
        (pa.array([[1.0] * 32]), "give fixed-size lists"),
        (pa.array([1.0] * 32), "give fixed-size lists"),
        (pa.array([["a"] * 32], pa.list_(pa.string(), 32)), "type object"),
        (lists(np.ones((6, 16), "f4")), "shape .any, 32."),
        (pa.array([], pa.list_(pa.float32(), 32)), "shape .0, 32."),
        (pa.array([[]], pa.list_(pa.float32(), 0)), "shape .1, 0."),
        (np.full((1, 32), 1e300), "finite numbers that float32 holds"),
        (np.full((1, 32), 1j), "finite numbers"),
        (np.full((1, 32), True), "finite numbers"),
        ([["a"] * 32], "finite numbers"),
        ("centroids", "finite numbers"),
        ({1: 2}, "finite numbers"),
        (5, "finite numbers"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(given: object, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        vector_parameters("IVF_FLAT", FLOATS, {"ivf_centroids": given})


@pytest.mark.parametrize("number", [256, -1, 1.5])
def test_centroids_of_bytes_are_not_cut_to_fit(number: float) -> None:
    with pytest.raises(InvalidRequestError, match="whole numbers that uint8 holds"):
        vector_parameters("IVF_FLAT", BYTES, {"ivf_centroids": np.full((1, 32), number)})


def test_codebooks_of_another_size_are_refused_in_whatever_form() -> None:
    book = np.ones((2, 16, 16))
    for given in (book, lists(book), book.reshape(-1, 16)):
        wanted = {"num_sub_vectors": 2, "ivf_centroids": CENTROIDS, "pq_codebook": given}
        with pytest.raises(InvalidRequestError, match="pq_codebook has shape"):
            vector_parameters("IVF_PQ", FLOATS, wanted)


def test_a_rotation_turns_vectors_and_does_nothing_else() -> None:
    turned = np.linalg.qr(np.random.default_rng(2).standard_normal((32, 32)))[0]
    for given in (turned, turned.astype("f2"), -turned, lists(turned), EYE[::-1]):
        found = vector_parameters("IVF_RQ", FLOATS, {"rotation": given}).rotation
        assert isinstance(found, np.ndarray)
    cut = EYE.copy()
    cut[5] = 0
    for given in (np.zeros((32, 32)), 2 * turned, cut, EYE + 0.01, np.full((32, 32), 1e30)):
        with pytest.raises(InvalidRequestError, match="rotation is not orthogonal"):
            vector_parameters("IVF_RQ", FLOATS, {"rotation": given})
