"""What was asked for when an index was made, as its manifest entry tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.file.arguments import checked_number
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.metric import metric_of
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping


def asked_details(given: Mapping[str, object]) -> bytes:
    """Return the part of details that says what was asked for, and no file tells.

    Parameters
    ----------
    given
        As `vector_parameters` takes it.
    """
    size = given.get("target_partition_size")
    details = index_pb2.VectorIndexDetails()
    if size is not None:
        details.target_partition_size = checked_number("target_partition_size", size, 0)
    data: bytes = details.SerializeToString()
    return data


def with_files(details: bytes, found: bytes) -> bytes:
    """Return details in which all that files tell is as they tell it.

    Parameters
    ----------
    details
        Of the segment in whose place another one comes, or `asked_details`.
    found
        Those of the model.
    """
    files = index_pb2.VectorIndexDetails.FromString(found)
    try:
        whole = index_pb2.VectorIndexDetails.FromString(details)
    except DecodeError:
        return found
    whole.MergeFrom(files)
    whole.metric_type = files.metric_type  # l2 is 0, which merging takes for nothing
    data: bytes = whole.SerializeToString()
    return data


def stored_parameters(details: bytes) -> tuple[str, dict[str, object]]:
    """Return the type of an index, and its parameters as `vector_parameters` takes them.

    Parameters
    ----------
    details
        Serialized ``VectorIndexDetails``. How many partitions were asked for is not among them.

    Raises
    ------
    UnusableSegmentError
        They are empty, as old writers left them, or cannot be read.

    Notes
    -----
    Vector index page, section 1.1.
    """
    if len(details) == 0:
        raise UnusableSegmentError("the manifest does not tell how it was made")
    try:
        message = index_pb2.VectorIndexDetails.FromString(details)
    except DecodeError as error:
        raise UnusableSegmentError(f"its details cannot be read: {error}") from error
    metric = metric_of(message.metric_type)
    if metric is None:
        raise UnusableSegmentError(f"metric {message.metric_type} is not known")
    found: dict[str, object] = {"metric": str(metric)}
    if message.target_partition_size > 0:
        found["target_partition_size"] = message.target_partition_size
    compression = message.WhichOneof("compression")
    match compression:
        case "pq":
            found["num_bits"] = message.pq.num_bits
            found["num_sub_vectors"] = message.pq.num_sub_vectors
        case "rq":
            found["num_bits"] = message.rq.num_bits
            is_fast = message.rq.rotation_type == index_pb2.RqCompression.FAST
            found["rotation_type"] = "fast" if is_fast else "matrix"
    graph = ""
    if message.HasField("hnsw_index_config"):
        graph, config = "HNSW_", message.hnsw_index_config
        found["m"], found["ef_construction"] = config.max_connections, config.construction_ef
        found["max_level"] = config.max_level
    return f"IVF_{graph}{(compression or 'flat').upper()}", found
