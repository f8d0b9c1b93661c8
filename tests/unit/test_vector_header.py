from __future__ import annotations

import json

import numpy as np
import pytest

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.header import (
    Declaration,
    ivf_buffer_number,
    read_centroids,
    read_declaration,
    read_partitions,
    storage_object,
)
from lance_core.index.vector.kinds import vector_index_kind
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.pq import PqParameters, read_codebook, read_pq_parameters
from lance_core.proto import index_pb2

PATH = "_indices/x/auxiliary.idx"
PQ = {
    "codebook_position": 2,
    "nbits": 8,
    "num_sub_vectors": 2,
    "dimension": 4,
    "codebook_tensor": [],
    "transposed": True,
}
# The worked example of the vector index page, 2.2.
IVF = bytes.fromhex(
    "12020003 1a020302 2218 0802 12020202 1a10 0000803f000000400000404000008040 29000000000000e03f"
)


def storage(**changes: object) -> dict[str, object]:
    return {key: value for key, value in {**PQ, **changes}.items() if value is not ...}


def tensor(values: np.ndarray, shape: tuple[int, ...] | None = None) -> index_pb2.Tensor:
    types = {"float16": 1, "float32": 2, "float64": 3, "uint8": 4}
    return index_pb2.Tensor(
        data_type=types[values.dtype.name],  # type: ignore[arg-type]  # checked by protobuf
        shape=values.shape if shape is None else shape,
        data=values.tobytes(),
    )


def test_type_and_metric_are_read() -> None:
    text = '{"type": "IVF_PQ", "distance_type":"cosine"}'
    assert read_declaration({"lance:index": text}, PATH) == Declaration("IVF_PQ", Metric.COSINE)


@pytest.mark.parametrize("metric", ["jaccard", None, 3])
def test_an_unknown_metric_makes_the_segment_unusable(metric: object) -> None:
    text = json.dumps({"type": "IVF_PQ", "distance_type": metric})
    with pytest.raises(UnusableSegmentError):
        read_declaration({"lance:index": text}, PATH)


def test_an_unknown_type_makes_the_segment_unusable() -> None:
    with pytest.raises(UnusableSegmentError, match="IVF_NEW"):
        vector_index_kind("IVF_NEW", Metric.L2)


@pytest.mark.parametrize("name", ["IVF_PQ", "IVF_SQ"])
def test_an_index_that_quantises_knows_no_hamming_distance(name: str) -> None:
    with pytest.raises(UnusableSegmentError, match=f"metric hamming is not supported by {name}"):
        vector_index_kind(name, Metric.HAMMING)


def test_files_without_a_declaration_are_unusable() -> None:
    with pytest.raises(UnusableSegmentError):
        read_declaration({}, PATH)


@pytest.mark.parametrize("text", ["", "[]", "{", "3", "[" * 100_000])
def test_a_declaration_that_is_no_object_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFileError):
        read_declaration({"lance:index": text}, PATH)


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "²", "9" * 5000])
def test_a_buffer_number_must_be_a_small_positive_number(text: str) -> None:
    with pytest.raises(CorruptFileError):
        ivf_buffer_number({"lance:ivf": text}, PATH)


def test_quantiser_parameters_are_read() -> None:
    assert read_pq_parameters(storage(), PATH) == PqParameters(8, 2, 4, True, 2, b"")


def test_codes_are_by_row_unless_said_to_be_transposed() -> None:
    assert not read_pq_parameters(storage(transposed=False), PATH).is_transposed
    assert not read_pq_parameters(storage(transposed=...), PATH).is_transposed


@pytest.mark.parametrize("nbits", [3, None, ..., "8", True])
def test_other_widths_of_codes_make_the_segment_unusable(nbits: object) -> None:
    with pytest.raises(UnusableSegmentError):
        read_pq_parameters(storage(nbits=nbits), PATH)


def test_older_writers_keep_the_codebook_in_the_metadata() -> None:
    parameters = read_pq_parameters(storage(codebook_position=0, codebook_tensor=[8, 2]), PATH)
    assert parameters.codebook_buffer is None
    assert parameters.inline_codebook == b"\x08\x02"


@pytest.mark.parametrize(
    "changes",
    [
        {"num_sub_vectors": 0},
        {"num_sub_vectors": True},
        {"num_sub_vectors": 3},
        {"num_sub_vectors": 1, "nbits": 4},
        {"dimension": "4"},
        {"dimension": ...},
        {"codebook_position": -1},
        {"codebook_position": 0, "codebook_tensor": [256]},
        {"codebook_position": 0, "codebook_tensor": "x"},
        {"codebook_position": 0, "codebook_tensor": [None]},
    ],
)
def test_parameters_that_contradict_the_format_are_corrupt(changes: dict[str, object]) -> None:
    with pytest.raises(CorruptFileError):
        read_pq_parameters(storage(**changes), PATH)


@pytest.mark.parametrize("text", ["", "[]", "[1]", '["", ""]', '["x"]', '["[]"]', "{}"])
def test_storage_metadata_is_an_object_in_a_string_in_an_array(text: str) -> None:
    with pytest.raises(CorruptFileError):
        storage_object({"storage_metadata": text}, PATH)


def test_storage_metadata_is_decoded_twice() -> None:
    stored = {"storage_metadata": json.dumps([json.dumps(PQ)])}
    assert storage_object(stored, PATH) == PQ


def test_the_worked_example_of_an_ivf_message_is_read() -> None:
    assert read_centroids(IVF, PATH).tolist() == [[1, 2], [3, 4]]
    offsets, lengths = read_partitions(IVF, 5, PATH)
    assert (offsets.tolist(), lengths.tolist()) == ([0, 3], [3, 2])


def test_a_partition_outside_the_file_is_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="outside"):
        read_partitions(IVF, 4, PATH)


def test_a_partition_whose_end_overflows_is_corrupt() -> None:
    message = index_pb2.IVF(offsets=[2**64 - 1], lengths=[2])
    with pytest.raises(CorruptFileError, match="outside"):
        read_partitions(message.SerializeToString(), 5, PATH)


def test_offsets_and_lengths_must_go_together() -> None:
    message = index_pb2.IVF(offsets=[0], lengths=[1, 2])
    with pytest.raises(CorruptFileError, match="lengths"):
        read_partitions(message.SerializeToString(), 5, PATH)


@pytest.mark.parametrize(
    ("shape", "num_bytes"),
    [((2, 2), 15), ((2**31, 2**31, 2**31), 0), ((4,), 16), ((4, 0), 0), ((), 4)],
)
def test_centroids_of_a_wrong_shape_or_size_are_corrupt(
    shape: tuple[int, ...], num_bytes: int
) -> None:
    centroids = index_pb2.Tensor(
        data_type=index_pb2.Tensor.FLOAT32, shape=shape, data=bytes(num_bytes)
    )
    message = index_pb2.IVF(centroids_tensor=centroids)
    with pytest.raises(CorruptFileError):
        read_centroids(message.SerializeToString(), PATH)


@pytest.mark.parametrize("buffer", [b"", b"\xff\xff"])
def test_an_ivf_message_without_centroids_is_corrupt(buffer: bytes) -> None:
    with pytest.raises(CorruptFileError):
        read_centroids(buffer, PATH)


@pytest.mark.parametrize("data_type", ["float16", "float64"])
def test_centroids_of_other_float_types_become_float32(data_type: str) -> None:
    message = index_pb2.IVF(centroids_tensor=tensor(np.array([[1.5, 2]], data_type)))
    centroids = read_centroids(message.SerializeToString(), PATH)
    assert centroids.dtype == np.float32
    assert centroids.tolist() == [[1.5, 2]]


def test_centroids_of_bytes_make_the_segment_unusable() -> None:
    message = index_pb2.IVF(centroids_tensor=tensor(np.ones((1, 2), np.uint8)))
    with pytest.raises(UnusableSegmentError):
        read_centroids(message.SerializeToString(), PATH)


def test_centroids_of_a_hamming_index_are_bytes() -> None:
    message = index_pb2.IVF(centroids_tensor=tensor(np.array([[0, 255]], np.uint8)))
    centroids = read_centroids(message.SerializeToString(), PATH, are_bytes=True)
    assert centroids.dtype == np.float32
    assert centroids.tolist() == [[0, 255]]


def test_centroids_of_floats_make_a_hamming_segment_unusable() -> None:
    message = index_pb2.IVF(centroids_tensor=tensor(np.ones((1, 2), np.float32)))
    with pytest.raises(UnusableSegmentError):
        read_centroids(message.SerializeToString(), PATH, are_bytes=True)


def test_codebook_values_run_over_sub_vectors_codes_and_dimensions() -> None:
    parameters = read_pq_parameters(storage(), PATH)
    values = np.arange(256 * 4, dtype=np.float32)
    codebook = read_codebook(tensor(values, (256, 4)).SerializeToString(), parameters, PATH)
    assert codebook.shape == (2, 2, 256)
    np.testing.assert_array_equal(codebook, values.reshape(2, 256, 2).transpose(0, 2, 1))


@pytest.mark.parametrize(
    "buffer", [b"\xff", tensor(np.ones((256, 3), np.float32)).SerializeToString()]
)
def test_a_codebook_that_does_not_fit_is_corrupt(buffer: bytes) -> None:
    with pytest.raises(CorruptFileError):
        read_codebook(buffer, read_pq_parameters(storage(), PATH), PATH)
