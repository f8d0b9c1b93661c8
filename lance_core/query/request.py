"""The requests that the query layer answers: validated, immutable values."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.query.request_checks import (
    check_choice,
    check_columns,
    check_filter,
    check_flag,
    check_minimum,
    check_whole,
    checked_params,
    hashable,
)
from lance_core.scan.ordering import OrderBy

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.index.vector.quantizer import ApproxMode

METRIC_NAMES = ("l2", "cosine", "dot", "hamming")
_APPROX_MODES = ("normal", "fast", "accurate")
_MAX_ROW_ID = 2**64 - 1


@dataclass(frozen=True, slots=True, eq=False)
class VectorQuery:
    """A nearest-neighbour query for one or several query vectors.

    Parameters
    ----------
    vectors
        Shape ``(m, d)``, float32, finite. One answer block per row, but all are one query where the
        rows of the table hold lists of vectors. None with ``row_ids``.
    k
        Rows wanted per query vector; None = all rows.
    column
        Path of the vector column; None = the only vector column of dimension ``d``.
    columns
        Columns of the answer in order, by name or computed; None = all columns of the table.
    metric
        ``l2``, ``cosine`` or ``dot``, for columns of uint8 ``hamming``, in any case; None = the
        metric of the index that is used, else ``l2`` or ``hamming``.
    min_probes, max_probes
        Bounds of the number of partitions probed per segment. Both equal: exactly that many. None:
        no bound on that side, and the number is found by automatic probing.
    refine_factor
        Re-rank ``k * refine_factor`` candidates by exact distance; None = do not refine.
    lower_bound, upper_bound
        Keep ``lower_bound <= distance < upper_bound``: of the distances that the answer has, exact
        ones where it is refined or rows without index are compared too, else the index's estimates.
    offset
        Rows to skip after ranking.
    use_index
        False: exact search over all rows.
    fast_search
        True: search only rows that an index covers.
    batched
        True: the answer begins with the column ``query_index``, unless all vectors are one query.
    filter
        Predicate over the rows, see `lance_core.expr`; rows for which it is unknown do
        not pass. None = all rows pass.
    params
        Values of the ``$name`` in the filter.
    prefilter
        True: only rows that pass take places in the answer. False: the ``offset + k`` nearest rows
        are found first, then those that do not pass are left out, so that fewer than ``k`` may
        remain; the filter may then name ``_distance``.
    row_ids
        Instead of ``vectors``: ids of rows, whose stored vectors are the query vectors. No row is
        among its own neighbours.
    ef
        Breadth of graph searches, at least ``k * refine_factor``; None = one and a half times that.
    approx_mode
        What to prefer where an index can be searched in more ways than one.
    """

    vectors: NDArray[np.float32] | None
    k: int | None = 10
    column: str | None = None
    columns: tuple[str | NamedExpression, ...] | None = None
    metric: str | None = None
    min_probes: int | None = None
    max_probes: int | None = None
    refine_factor: int | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    offset: int = 0
    use_index: bool = True
    fast_search: bool = False
    with_row_id: bool = False
    batched: bool = False
    filter: str | None = None
    prefilter: bool = True
    row_ids: tuple[int, ...] | None = None
    ef: int | None = None
    approx_mode: ApproxMode = "normal"
    params: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        self._check_own_vectors()
        _check_row_ids(self.row_ids)
        self._check_metric()
        self._check_flags()
        self._check_probes()
        check_minimum("ef", self.ef, 1)
        check_minimum("k", self.k, 1)
        check_minimum("refine_factor", self.refine_factor, 1)
        check_whole("offset", self.offset, 0)
        _check_bound("lower_bound", self.lower_bound)
        _check_bound("upper_bound", self.upper_bound)
        check_columns(column_names(self.columns))
        if self.column is not None and not isinstance(self.column, str):
            raise InvalidRequestError(f"column is {self.column!r}; give a name")
        check_filter(self.filter)
        # how a frozen value is finished
        object.__setattr__(self, "params", checked_params(self.params))
        check_choice("approx_mode", self.approx_mode, _APPROX_MODES)

    def with_vectors(self, vectors: NDArray[np.float32]) -> VectorQuery:
        """Return the same query for other vectors.

        Everything else was checked when this query was made: making another one of the same parts
        would take twice as long, 5 microseconds.
        """
        other = object.__new__(VectorQuery)
        for name in _BESIDE_VECTORS:
            object.__setattr__(other, name, getattr(self, name))
        object.__setattr__(other, "vectors", vectors)
        other._check_own_vectors()
        other._check_metric()
        return other

    @property
    def dimension(self) -> int | None:
        """Length of the query vectors; None where it is that of stored ones."""
        return None if self.vectors is None else self.vectors.shape[1]

    @property
    def num_queries(self) -> int:
        """Number of query vectors."""
        if self.row_ids is not None:
            return len(self.row_ids)
        return 0 if self.vectors is None else len(self.vectors)

    @property
    def parameters(self) -> Hashable:
        """Everything but the vectors' values: what decides how the query is answered."""
        return (
            self.dimension,
            self.k,
            self.column,
            self.columns,
            self.metric,
            self.min_probes,
            self.max_probes,
            self.refine_factor,
            self.lower_bound,
            self.upper_bound,
            self.offset,
            self.use_index,
            self.fast_search,
            self.with_row_id,
            self.batched,
            self.filter,
            hashable(self.params),
            self.prefilter,
            self.ef,
            self.approx_mode,
        )

    @property
    def texts(self) -> str:
        """The filter and all expressions."""
        return all_texts(self.filter, self.columns)

    def _check_metric(self) -> None:
        if self.metric is not None:
            plain = str(self.metric).lower()
            if plain not in METRIC_NAMES:
                known = ", ".join(METRIC_NAMES)
                raise InvalidRequestError(f'unknown metric "{self.metric}"; use one of: {known}')
            object.__setattr__(self, "metric", plain)  # how a frozen value is finished
        if self.metric == "cosine" and self.vectors is not None:
            require_nonzero(self.vectors)

    def _check_own_vectors(self) -> None:
        if (self.vectors is None) == (self.row_ids is None):
            raise InvalidRequestError("give either query vectors or ids of rows")
        if self.vectors is not None:
            _check_vectors(self.vectors)

    def _check_flags(self) -> None:
        check_flag("use_index", self.use_index)
        check_flag("fast_search", self.fast_search)
        check_flag("with_row_id", self.with_row_id)
        check_flag("batched", self.batched)
        check_flag("prefilter", self.prefilter)

    def _check_probes(self) -> None:
        check_minimum("minimum_nprobes", self.min_probes, 1)
        check_minimum("maximum_nprobes", self.max_probes, 1)
        if (
            self.min_probes is not None
            and self.max_probes is not None
            and self.min_probes > self.max_probes
        ):
            raise InvalidRequestError(
                f"minimum_nprobes {self.min_probes} is above maximum_nprobes {self.max_probes}"
            )


_BESIDE_VECTORS = tuple(each.name for each in fields(VectorQuery) if each.name != "vectors")


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A column of an answer that is computed: its name, and an expression such as ``price * 2``."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if not all(isinstance(each, str) for each in (self.name, self.text)):
            raise InvalidRequestError(
                f"columns has {self.name!r}: {self.text!r}; give a name and an expression as texts"
            )


@dataclass(frozen=True, slots=True)
class ScanQuery:
    """A plain query: rows in table order, or in another.

    Parameters
    ----------
    columns
        Columns of the answer in order, by name or computed; None = all columns of the table.
    limit
        Most rows to return; None = all.
    offset
        Rows to skip, of those that pass and in the order asked for.
    with_row_id
        Add ``_rowid`` unless it is among the columns.
    filter
        Rows for which it is not true are left out; see `lance_core.expr`. None = none are.
    params
        Values of the ``$name`` in the filter and in expressions.
    order_by
        What to order rows by, the first column counting most; ties stay in table order. Empty =
        table order.
    use_index
        False: read all rows to find those that pass.
    fast_search
        Leave out rows that the indices do not cover which the filter asks, if it asks any.
    fragment_ids
        Only rows of these fragments, without limit and offset; None = of all.
    """

    columns: tuple[str | NamedExpression, ...] | None = None
    limit: int | None = None
    offset: int = 0
    with_row_id: bool = False
    filter: str | None = None
    params: Mapping[str, object] | None = None
    order_by: tuple[OrderBy, ...] = ()
    use_index: bool = True
    fast_search: bool = False
    fragment_ids: frozenset[int] | None = None

    def __post_init__(self) -> None:
        check_columns(column_names(self.columns))
        check_minimum("limit", self.limit, 0)
        check_whole("offset", self.offset, 0)
        check_flag("with_row_id", self.with_row_id)
        check_filter(self.filter)
        # how a frozen value is finished
        object.__setattr__(self, "params", checked_params(self.params))
        _check_order(self.order_by)
        check_flag("use_index", self.use_index)
        check_flag("fast_search", self.fast_search)
        if self.fragment_ids is not None and (self.limit is not None or self.offset > 0):
            raise InvalidRequestError("limit and offset count the rows of all fragments")


def require_nonzero(vectors: NDArray[np.float32]) -> None:
    """Refuse zero vectors, whose cosine distance to anything is undefined."""
    if not vectors.any(axis=1).all():
        raise InvalidRequestError(
            "a zero query vector has no direction, so it has no cosine distance; give a vector"
            " with at least one number other than 0"
        )


def _check_vectors(vectors: object) -> None:
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32:
        raise InvalidRequestError(
            f"query vectors are given as {_kind(vectors)}; give an array of float32"
        )
    if vectors.ndim != 2 or vectors.size == 0:  # noqa: PLR2004
        raise InvalidRequestError(
            f"query vectors have shape {vectors.shape}; give one or more vectors of equal"
            " length, at least one number each"
        )
    if not np.isfinite(vectors).all():
        raise InvalidRequestError("the query vector holds NaN or infinity; all must be finite")


def _check_row_ids(row_ids: object) -> None:
    if row_ids is None:
        return
    if not isinstance(row_ids, tuple) or len(row_ids) == 0:
        raise InvalidRequestError(f"row_ids is {row_ids!r}; give one or more ids of rows")
    for each in row_ids:
        check_whole("row_id", each, 0)
        if each > _MAX_ROW_ID:
            raise InvalidRequestError(f"row_id is {each}; ids of rows have at most 64 bits")


def all_texts(filter_text: str | None, columns: Sequence[str | NamedExpression] | None) -> str:
    """Return a filter and the expressions among columns as one text."""
    computed = (each.text for each in columns or () if isinstance(each, NamedExpression))
    return " ".join([filter_text or "", *computed])


def column_names(columns: object) -> object:
    """Return columns with the names of computed ones in their place."""
    if not isinstance(columns, tuple):
        return columns
    return tuple(each.name if isinstance(each, NamedExpression) else each for each in columns)


def _check_order(given: object) -> None:
    if not isinstance(given, tuple) or not all(isinstance(each, OrderBy) for each in given):
        raise InvalidRequestError(f"order_by is {given!r}; give a list of what to order by")


def _kind(value: object) -> str:
    return str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__


def _check_bound(name: str, bound: object) -> None:
    if bound is None:
        return
    if not _is_ordered(bound):
        raise InvalidRequestError(f"{name} is {bound!r}; give a number or leave it out")


def _is_ordered(bound: object) -> bool:
    """Tell whether something is a number that floats can be compared with; infinities are."""
    if not isinstance(bound, (int, float, np.integer, np.floating)) or isinstance(bound, bool):
        return False
    try:
        return not math.isnan(bound)
    except OverflowError:  # a whole number beyond all floats
        return False
