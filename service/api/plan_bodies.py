"""Where a query stands in the bodies of those who ask about one, rather than for its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from service.api.models.requests import QueryBody, VersionedBody

if TYPE_CHECKING:
    from collections.abc import Mapping

_WRAPPED = "query"
_ABOUT_THE_TABLE = frozenset(VersionedBody.model_fields)
_OF_QUERIES = frozenset(QueryBody.model_fields) - _ABOUT_THE_TABLE


def query_of(members: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the members of the query: those of ``query``, or of the body itself.

    LanceDB's clients wrap it for `explain_plan` and do not for `analyze_plan`; either is understood
    everywhere. None where the body holds no member of a query at all. The version may be named
    beside the query or in it, which wins.

    Raises
    ------
    InvalidRequestError
        ``query`` is no object, or parts of a query stand beside it, which would be ignored.
    """
    beside = sorted(name for name in _OF_QUERIES & members.keys() if members[name] is not None)
    query = members.get(_WRAPPED)
    if query is None:
        return members if beside else None
    if not isinstance(query, dict):
        raise InvalidRequestError("query: must be an object, the query that is asked about")
    if beside:
        raise InvalidRequestError(f"{beside[0]}: stands beside query; move it inside")
    outside = {name: members[name] for name in _ABOUT_THE_TABLE & members.keys()}
    return {**outside, **{name: value for name, value in query.items() if value is not None}}
