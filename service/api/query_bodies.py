"""Query bodies as requests of the library (rest-api section 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.request import NamedExpression, ScanQuery, VectorQuery
from lance_core.query.text_request import TextQuery
from lance_core.scan.ordering import OrderBy
from service.api.bodies import check, given_or
from service.api.fusion_bodies import parse_fusion
from service.api.models.requests import ComputedColumns, QueryOptions
from service.api.query_vectors import parse_vectors
from service.api.text_queries import parse_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from lance_core.index.text.queries import TextNode
    from lance_core.query.engine import Request
    from service.limits import QueryLimits

DEFAULT_K = 10
UNLIMITED_K = 2**62
"""LanceDB's clients send 2^63 - 1 for "no limit"."""


@dataclass(frozen=True, slots=True)
class WireQuery:
    """A query as it was asked: what to run, on which version, how new, how long."""

    request: Request
    options: QueryOptions


def parse_query(members: Mapping[str, object], *, limits: QueryLimits) -> WireQuery:
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
    columns = _answer_columns(options, computed)
    found, text = parse_vectors(members.get("vector")), parse_text(members.get("full_text_query"))
    row_ids = _row_ids(options)
    _require_within(limits, options, 0 if found is None else len(found[0]))
    if found is None and row_ids is None:
        if options.fusion is not None:
            raise InvalidRequestError("fusion: needs a vector or row_id, and full_text_query")
        if text is None:
            return WireQuery(_scan_query(options, columns), options)
        use_index = not given_or(options.bypass_vector_index, False)
        alone = _text_query(options, columns, text, limits=limits, use_index=use_index)
        return WireQuery(alone, options)
    vectors, batched = (None, options.row_ids is not None) if found is None else found
    vector = _vector_query(options, columns, vectors, limits=limits, batched=batched)
    if text is None:
        if options.fusion is not None:
            raise InvalidRequestError("fusion: needs full_text_query beside the vector")
        return WireQuery(vector, options)
    matching = _text_query(options, columns, text, limits=limits, use_index=True)
    return WireQuery(_hybrid_query(options, vector, matching), options)


def _require_within(limits: QueryLimits, options: QueryOptions, num_vectors: int) -> None:
    for name in ("nprobes", "minimum_nprobes", "maximum_nprobes"):
        limits.require("max_probes", getattr(options, name), name)
    limits.require("max_ef", options.ef, "ef")
    limits.require("max_batch", num_vectors, "the number of query vectors")
    limits.require("max_batch", len(given_or(options.row_ids, [])), "the number of row_ids")
    limits.require_short_filter(options.filter)


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


def _scan_query(
    options: QueryOptions, columns: tuple[str | NamedExpression, ...] | None
) -> ScanQuery:
    k = DEFAULT_K if options.k is None else options.k
    return ScanQuery(
        columns=columns,
        limit=None if k >= UNLIMITED_K else k,
        offset=given_or(options.offset, 0),
        with_row_id=given_or(options.with_row_id, False),
        filter=options.filter,
        params=options.params,
        order_by=tuple(
            OrderBy(
                each.column_name, given_or(each.ascending, True), given_or(each.nulls_first, False)
            )
            for each in given_or(options.order_by, [])
        ),
        use_index=not given_or(options.bypass_vector_index, False),
        fast_search=given_or(options.fast_search, False),
    )


def _vector_query(
    options: QueryOptions,
    columns: tuple[str | NamedExpression, ...] | None,
    vectors: NDArray[np.float32] | None,
    *,
    limits: QueryLimits,
    batched: bool,
) -> VectorQuery:
    _require_no_order(options, "near a vector are ordered by distance", "vector")
    min_probes, max_probes = _probes(options)
    return VectorQuery(
        vectors=vectors,
        k=_ranked_k(options.k, limits),
        column=options.vector_column,
        columns=columns,
        metric=options.distance_type,
        min_probes=min_probes,
        max_probes=max_probes,
        refine_factor=options.refine_factor,
        lower_bound=options.lower_bound,
        upper_bound=options.upper_bound,
        offset=given_or(options.offset, 0),
        use_index=not given_or(options.bypass_vector_index, False),
        fast_search=given_or(options.fast_search, False),
        with_row_id=given_or(options.with_row_id, False),
        batched=batched,
        filter=options.filter,
        params=options.params,
        prefilter=given_or(options.prefilter, True),
        row_ids=_row_ids(options),
        ef=options.ef,
        approx_mode="normal" if options.approx_mode is None else options.approx_mode,
    )


def _text_query(
    options: QueryOptions,
    columns: tuple[str | NamedExpression, ...] | None,
    text: TextNode,
    *,
    limits: QueryLimits,
    use_index: bool,
) -> TextQuery:
    _require_no_order(options, "that have words are ordered by score", "full_text_query")
    return TextQuery(
        text,
        k=_ranked_k(options.k, limits),
        columns=columns,
        filter=options.filter,
        params=options.params,
        prefilter=given_or(options.prefilter, True),
        offset=given_or(options.offset, 0),
        with_row_id=given_or(options.with_row_id, False),
        fast_search=given_or(options.fast_search, False),
        use_index=use_index,
    )


def _hybrid_query(options: QueryOptions, vector: VectorQuery, text: TextQuery) -> HybridQuery:
    return HybridQuery(
        vector,
        text,
        k=vector.k,
        offset=vector.offset,
        columns=vector.columns,
        with_row_id=vector.with_row_id,
        fusion=parse_fusion(options.fusion),
    )


def _require_no_order(options: QueryOptions, told: str, member: str) -> None:
    if options.order_by:
        raise InvalidRequestError(f"order_by: rows {told}; leave out order_by or {member}")


def _ranked_k(k: int | None, limits: QueryLimits) -> int | None:
    """Return the k of a ranking, None = no limit; 0 means the default, as clients expect."""
    if k is None or k == 0:
        return DEFAULT_K
    if k >= UNLIMITED_K:
        return None
    limits.require("max_k", k, "k")
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
