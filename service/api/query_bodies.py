"""Query bodies as requests of the library (rest-api section 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import InvalidRequestError, LimitExceededError
from lance_core.query.request import NamedExpression, ScanQuery, VectorQuery
from lance_core.scan.ordering import OrderBy
from service.api.bodies import check
from service.api.models.requests import ComputedColumns, QueryOptions
from service.api.query_vectors import parse_vectors

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

V = TypeVar("V")

DEFAULT_K = 10
UNLIMITED_K = 2**62
"""LanceDB's clients send 2^63 - 1 for "no limit"."""


@dataclass(frozen=True, slots=True)
class WireQuery:
    """A query as it was asked: what to run, on which version, how new, how long."""

    request: VectorQuery | ScanQuery
    options: QueryOptions


def parse_query(members: Mapping[str, object], *, max_k: int) -> WireQuery:
    """Return the query that a JSON object describes.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, LimitExceededError
        A member is wrong in itself.
    """
    if members.get("predicate") is not None:
        raise InvalidRequestError("predicate: in a query it is called filter")
    columns = _columns(members.get("columns"))
    computed = None
    if isinstance(columns, dict):
        computed, columns = check(ComputedColumns, {"columns": columns}).columns, None
    options = check(QueryOptions, {**members, "columns": columns})
    found = parse_vectors(members.get("vector"))
    row_ids = _row_ids(options)
    if found is None and row_ids is None:
        return WireQuery(_scan_query(options, computed), options)
    vectors, batched = (None, options.row_ids is not None) if found is None else found
    columns = _answer_columns(options, computed)
    request = _vector_query(options, columns, vectors, max_k=max_k, batched=batched)
    return WireQuery(request, options)


def _row_ids(options: QueryOptions) -> tuple[int, ...] | None:
    if options.row_ids is None:
        return None if options.row_id is None else (options.row_id,)
    if options.row_id is not None:
        raise InvalidRequestError("row_id: give either this or row_ids")
    return tuple(options.row_ids)


def _columns(given: object) -> object:
    """Return what stands inside the Namespace forms; other objects hold expressions."""
    if not isinstance(given, dict):
        return given
    names, aliases = given.get("column_names"), given.get("column_aliases")
    if isinstance(names, list):
        return names
    if isinstance(aliases, dict):
        return aliases
    return given


def _scan_query(options: QueryOptions, computed: Mapping[str, str] | None) -> ScanQuery:
    k = DEFAULT_K if options.k is None else options.k
    return ScanQuery(
        columns=_answer_columns(options, computed),
        limit=None if k >= UNLIMITED_K else k,
        offset=_or(options.offset, 0),
        with_row_id=_or(options.with_row_id, False),
        filter=options.filter,
        params=options.params,
        order_by=tuple(
            OrderBy(each.column_name, _or(each.ascending, True), _or(each.nulls_first, False))
            for each in _or(options.order_by, [])
        ),
        use_index=not _or(options.bypass_vector_index, False),
        fast_search=_or(options.fast_search, False),
    )


def _vector_query(
    options: QueryOptions,
    columns: tuple[str | NamedExpression, ...] | None,
    vectors: NDArray[np.float32] | None,
    *,
    max_k: int,
    batched: bool,
) -> VectorQuery:
    if options.order_by:
        raise InvalidRequestError(
            "order_by: rows near a vector are ordered by distance; leave out order_by or vector"
        )
    min_probes, max_probes = _probes(options)
    return VectorQuery(
        vectors=vectors,
        k=_vector_k(options.k, max_k),
        column=options.vector_column,
        columns=columns,
        metric=options.distance_type,
        min_probes=min_probes,
        max_probes=max_probes,
        refine_factor=options.refine_factor,
        lower_bound=options.lower_bound,
        upper_bound=options.upper_bound,
        offset=_or(options.offset, 0),
        use_index=not _or(options.bypass_vector_index, False),
        fast_search=_or(options.fast_search, False),
        with_row_id=_or(options.with_row_id, False),
        batched=batched,
        filter=options.filter,
        params=options.params,
        prefilter=_or(options.prefilter, True),
        row_ids=_row_ids(options),
        ef=options.ef,
        approx_mode="normal" if options.approx_mode is None else options.approx_mode,
    )


def _vector_k(k: int | None, max_k: int) -> int | None:
    """Return the k of a vector query, None = no limit; 0 means the default, as clients expect."""
    if k is None or k == 0:
        return DEFAULT_K
    if k >= UNLIMITED_K:
        return None
    if k > max_k:
        raise LimitExceededError("max_k", max_k, k, asked="k")
    return k


def _probes(options: QueryOptions) -> tuple[int | None, int | None]:
    """Return the smallest and the largest number of probes, None = open."""
    both, least, most = options.nprobes, options.minimum_nprobes, options.maximum_nprobes
    if both is None or (least is not None and most is not None):
        return least, None if most == 0 else most
    # What the caller did not name must not be what is wrong.
    if both == 0:
        raise InvalidRequestError("nprobes is 0; it must be at least 1")
    if most is not None and 0 < most < both:
        raise InvalidRequestError(f"nprobes {both} is above maximum_nprobes {most}")
    if least is not None and least > both:
        raise InvalidRequestError(f"minimum_nprobes {least} is above nprobes {both}")
    if most is not None:
        return both, None if most == 0 else most
    return both if least is None else least, both


def _answer_columns(
    options: QueryOptions, computed: Mapping[str, str] | None
) -> tuple[str | NamedExpression, ...] | None:
    if computed is not None:
        return tuple(NamedExpression(name, text) for name, text in computed.items())
    return None if options.columns is None else tuple(options.columns)


def _or(value: V | None, default: V) -> V:
    return default if value is None else value
