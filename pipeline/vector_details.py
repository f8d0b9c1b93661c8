"""What the manifest says of segments of vectors: graphs, and how the model was trained.

How it was trained are hints of the writer, for which the format has a place that others leave as
it is. Segments that are made of others take them over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from lance_core.proto import table_pb2

_ROWS, _DISTANCE = "lance_serve.trained_rows", "lance_serve.trained_distance"
_TYPE = "vectorindexdetails"


@dataclass(frozen=True, slots=True)
class Training:
    """How a model was trained.

    Parameters
    ----------
    num_rows
        Vectors that the column had.
    mean_distance
        Of the sample to its centroids; None where that says nothing.
    """

    num_rows: int
    mean_distance: float | None


def with_training(segment: table_pb2.IndexMetadata, training: Training) -> table_pb2.IndexMetadata:
    """Return a segment of vectors that says how its model was trained."""
    details = index_pb2.VectorIndexDetails.FromString(segment.index_details.value)
    details.runtime_hints[_ROWS] = str(training.num_rows)
    if training.mean_distance is not None:
        details.runtime_hints[_DISTANCE] = repr(training.mean_distance)
    hinted = type(segment)()
    hinted.CopyFrom(segment)
    hinted.index_details.value = details.SerializeToString(deterministic=True)
    return hinted


def training_of(segment: table_pb2.IndexMetadata) -> Training | None:
    """Return how the model of a segment was trained, None where it does not say so."""
    details = _details(segment)
    if details is None:
        return None
    hints = details.runtime_hints
    try:
        distance = float(hints[_DISTANCE]) if _DISTANCE in hints else None
        return Training(int(hints[_ROWS]), distance) if _ROWS in hints else None
    except ValueError:
        return None  # others may have written anything


def has_graphs(segment: table_pb2.IndexMetadata) -> bool:
    """Tell whether a segment is of vectors and has graphs, as far as the manifest tells."""
    details = _details(segment)
    return details is not None and details.HasField("hnsw_index_config")


def _details(segment: table_pb2.IndexMetadata) -> index_pb2.VectorIndexDetails | None:
    found = segment.index_details
    if found.type_url.rpartition(".")[2].lower() != _TYPE:
        return None
    try:
        return index_pb2.VectorIndexDetails.FromString(found.value)
    except DecodeError:
        return None
