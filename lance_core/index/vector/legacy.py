"""The metric of an IVF_PQ index of release 0.21 or before, which is one file of a form of its own.

Such an index is not searched. Its rows are searched exactly, by the metric it was built for, which
only the file tells (vector index page, section 2.6).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.index.vector.metric import metric_of
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from lance_core.index.vector.metric import Metric
    from lance_core.table.base_paths import Place

_TAIL = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_ENDING = (0, 1, b"LANC")
_MOST_BYTES = 64 << 20


def legacy_metric(place: Place, size: int | None) -> Metric | None:
    """Return the metric that a legacy index file names.

    Parameters
    ----------
    place
        The file.
    size
        Its size, None = ask.

    Returns
    -------
    Metric | None
        None where the file is of another form, damaged, or describes itself at a length beyond all
        such files.
    """
    tail = place.scheduler.tail(place.path, size, _TAIL.size)
    if len(tail.view) < _TAIL.size:
        return None
    start, *ending = _TAIL.unpack(tail.view)
    if tuple(ending) != _ENDING or start + _LENGTH.size > tail.start:
        return None
    (head,) = place.scheduler.read(place.path, [(start, start + _LENGTH.size)])
    (length,) = _LENGTH.unpack(head)
    start += _LENGTH.size
    if length > min(tail.start - start, _MOST_BYTES):
        return None
    (message,) = place.scheduler.read(place.path, [(start, start + length)])
    try:
        index = index_pb2.LegacyIndex.FromString(bytes(message))
    except DecodeError:
        return None
    return metric_of(index.vector_index.metric_type) if index.HasField("vector_index") else None
