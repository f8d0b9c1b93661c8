"""How many rows a walk through a graph keeps, as a query asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from lance_core.query.plan import IndexChoice
    from lance_core.query.request import VectorQuery

_GRAPHS = "IVF_HNSW"


def require_breadth(request: VectorQuery, choice: IndexChoice) -> None:
    """Refuse an ``ef`` that keeps fewer rows than are asked for, where a graph is searched.

    So does pylance; without a graph ``ef`` means nothing. Only what the caller chose counts: rows
    that are searched for besides, such as those that are skipped, widen the walk by themselves.

    Raises
    ------
    InvalidRequestError
        ``ef`` is below ``k`` times the refine factor.
    """
    if request.ef is None or request.k is None:
        return
    factor = 1 if request.refine_factor is None else request.refine_factor
    has_graph = any(segment.kind.startswith(_GRAPHS) for segment in choice.segments)
    if has_graph and request.ef < request.k * factor:
        raise InvalidRequestError(
            f"ef is {request.ef}; it must be at least k times the refine factor,"
            f" {request.k * factor}"
        )
