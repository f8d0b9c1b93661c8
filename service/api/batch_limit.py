"""The bound on answers of batches: a few kilobytes of vectors must not ask for gigabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import LimitExceededError
from lance_core.query.request import VectorQuery

if TYPE_CHECKING:
    from lance_core.dataset import Dataset
    from lance_core.query.engine import Request

LIMIT_NAME = "max_k"


def may_be_too_large(request: Request, max_k: int) -> bool:
    """Say whether a batch exceeds the limit unless the table is small; needs no table."""
    if not isinstance(request, VectorQuery) or request.num_queries == 1:
        return False
    return request.k is None or request.num_queries * (request.k + request.offset) > max_k


def require_small_batch(request: Request, dataset: Dataset, max_k: int) -> None:
    """Refuse a batch that would rank too many rows, all its vectors together.

    Rows that the offset skips count: they are held until all vectors were searched. May read
    deletion files, to count the rows of the table.

    Raises
    ------
    LimitExceededError
        Vectors times k exceeds the limit; k counts up to the number of rows.
    """
    if not may_be_too_large(request, max_k) or not isinstance(request, VectorQuery):
        return
    num_vectors, num_rows = request.num_queries, dataset.count_rows()
    ranked = num_rows if request.k is None else min(request.k + request.offset, num_rows)
    if num_vectors * ranked > max_k:
        factor = "k" if request.offset == 0 else "(k + offset)"
        raise LimitExceededError(
            LIMIT_NAME,
            max_k,
            num_vectors * ranked,
            asked=f"vectors x {factor} ({num_vectors} x {ranked})",
        )
