"""Distances that vector indices are built for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from lance_core.kernels import distance
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping


class Metric(StrEnum):
    """A distance; smaller is nearer, always.

    ``l2`` is the squared Euclidean distance, ``cosine`` is ``1 - cos`` and ``dot`` ``1 - q.x``.
    These are for vectors of floats, ``hamming``, the number of differing bits, is for bytes.
    """

    L2 = "l2"
    COSINE = "cosine"
    DOT = "dot"
    HAMMING = "hamming"

    @property
    def code(self) -> int:
        """The number by which kernels know the metric."""
        return _CODES[self]

    @property
    def vector_type(self) -> np.dtype[np.generic]:
        """What kernels take stored vectors as."""
        return _BYTE if self == Metric.HAMMING else _FLOAT32

    @property
    def coded_for(self) -> Metric | None:
        """The metric whose byte codes bound this one's distances, None where none do."""
        return {Metric.DOT: Metric.L2, Metric.HAMMING: None}.get(self, self)


_BYTE, _FLOAT32 = np.dtype(np.uint8), np.dtype(np.float32)

_CODES = {
    Metric.L2: distance.L2,
    Metric.COSINE: distance.COSINE,
    Metric.DOT: distance.DOT,
    Metric.HAMMING: distance.HAMMING,
}

_BY_NUMBER: Mapping[int, Metric] = {
    index_pb2.VectorMetricType.L2: Metric.L2,
    index_pb2.VectorMetricType.Cosine: Metric.COSINE,
    index_pb2.VectorMetricType.Dot: Metric.DOT,
    index_pb2.VectorMetricType.Hamming: Metric.HAMMING,
}


def metric_of(number: int) -> Metric | None:
    """Return the metric of a number in a message, None for one that is not supported."""
    return _BY_NUMBER.get(number)


def metric_in_details(details: bytes) -> Metric | None:
    """Return the metric that the manifest records for a segment.

    The files of a usable segment know better; this is for segments whose files cannot be used.

    Parameters
    ----------
    details
        Serialized ``VectorIndexDetails``. Empty ones say nothing: None. In others an absent metric
        means l2, by the rules of protobuf.

    Returns
    -------
    Metric | None
        None also when the details cannot be read or name a metric that is not supported.

    Notes
    -----
    Vector index page, section 1.
    """
    if len(details) == 0:
        return None
    try:
        message = index_pb2.VectorIndexDetails.FromString(details)
    except DecodeError:
        return None
    return metric_of(message.metric_type)
