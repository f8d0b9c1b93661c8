"""The types of vector index that are known by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.flat import open_flat
from lance_core.index.vector.hnsw import open_hnsw
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.pq import open_pq
from lance_core.index.vector.rabit import open_rabit
from lance_core.index.vector.sq import open_sq

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_core.index.vector.quantizer import (
        Graph,
        GraphSource,
        Quantizer,
        StorageSource,
    )


@dataclass(frozen=True, slots=True)
class VectorIndexKind:
    """How the files of one type of index are opened."""

    open_quantizer: Callable[[StorageSource], Quantizer]
    open_graph: Callable[[GraphSource], Graph] | None = None


_KINDS = {
    "IVF_FLAT": VectorIndexKind(open_flat),
    "IVF_PQ": VectorIndexKind(open_pq),
    "IVF_RQ": VectorIndexKind(open_rabit),
    "IVF_SQ": VectorIndexKind(open_sq),
    "IVF_HNSW_FLAT": VectorIndexKind(open_flat, open_hnsw),
    "IVF_HNSW_PQ": VectorIndexKind(open_pq, open_hnsw),
    "IVF_HNSW_SQ": VectorIndexKind(open_sq, open_hnsw),
}


_KINDS_OF_BYTES = frozenset({"IVF_FLAT", "IVF_HNSW_FLAT"})


def vector_index_kind(name: str, metric: Metric) -> VectorIndexKind:
    """Return the type of index of a name; ``UnusableSegmentError`` if it is not supported.

    Types that quantise know no hamming distance (vector index page, section 3).
    """
    kind = _KINDS.get(name)
    if kind is None:
        raise UnusableSegmentError(f"index type {name} is not supported")
    if metric == Metric.HAMMING and name not in _KINDS_OF_BYTES:
        raise UnusableSegmentError(f"metric {metric} is not supported by {name}")
    return kind
