"""What queries by vector with the same parameters share: columns, filters and a plan, made once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from lance_core.query.answer_shape import shape_of_answer
from lance_core.query.column_search import ColumnSearch
from lance_core.query.fitted_vectors import metric_for
from lance_core.query.indexed_filter import IndexUse
from lance_core.query.planner import PassingCounts, plan_vector
from lance_core.query.postfilter import Postfilter
from lance_core.query.prepared import PreparedQueries, is_long
from lance_core.query.request import require_nonzero
from lance_core.query.residency import NotResidentError
from lance_core.query.row_filter import RowFilter
from lance_core.query.vector_field import find_vector_field
from lance_core.scan.rows import count_rows
from lance_core.scan.take import RowTaker

if TYPE_CHECKING:
    from lance_core.ids import FieldId
    from lance_core.query.answer_shape import AnswerShape
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import VectorPlan
    from lance_core.query.request import VectorQuery
    from lance_core.query.session import Session
    from lance_core.schema.field import LanceField
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class _ReadQuery:
    """What the texts of a query say of the columns, before any row is looked at."""

    column: ColumnSearch
    shape: AnswerShape
    prefilter: RowFilter | None
    postfilter: Postfilter | None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedVectors:
    """Everything about a query that its vectors do not decide."""

    column: ColumnSearch
    shape: AnswerShape
    taker: RowTaker
    plan: VectorPlan
    prefilter: RowFilter | None
    postfilter: Postfilter | None


class VectorPreparer:
    """Prepares queries by vector on one snapshot; safe to share between threads.

    Parameters
    ----------
    session
        Cache and opened files.
    snapshot
        The version to read.
    """

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot
        self._columns: dict[FieldId, ColumnSearch] = {}
        self._asked: dict[tuple[str | None, int | None], ColumnSearch] = {}
        self._read: PreparedQueries[_ReadQuery] = PreparedQueries()
        self._prepared: PreparedQueries[PreparedVectors] = PreparedQueries()
        self._num_rows: int | None = None
        self._lock = Lock()

    def count_rows(self) -> int:
        """Return the number of live rows."""
        if self._num_rows is None:
            self._num_rows = count_rows(self._session.files, self._snapshot)
        return self._num_rows

    def prepare(
        self, request: VectorQuery, deadline: Deadline, *, resident_only: bool
    ) -> PreparedVectors:
        """Return what queries with the same parameters share, made for the first of them."""
        key = request.parameters
        found = self._prepared.get(key)
        if found is None:
            found = self._made(request, deadline, resident_only=resident_only)
            self._prepared.keep(key, found, request.texts, request.params)
        if found.plan.metric == "cosine" and request.vectors is not None:
            require_nonzero(request.vectors)
        return found

    def open_column(self, field: LanceField, *, skips_damage: bool = False) -> ColumnSearch:
        """Return what searches a column; what was damaged is looked at anew each time."""
        found = self._columns.get(field.id)
        if found is None:
            fresh = ColumnSearch(self._session, self._snapshot, field, skips_damage=skips_damage)
            if fresh.is_damaged:
                return fresh
            with self._lock:
                found = self._columns.setdefault(field.id, fresh)
        return found

    def _made(
        self, request: VectorQuery, deadline: Deadline, *, resident_only: bool
    ) -> PreparedVectors:
        read = self._read_query(request, deadline, resident_only=resident_only)
        passing = None
        if read.prefilter is not None:
            passing = self._passing_counts(read.prefilter, deadline, resident_only=resident_only)
        return PreparedVectors(
            read.column,
            read.shape,
            RowTaker(self._session.files, self._snapshot, read.shape.stored),
            self._plan_vector(request, read.column, read.shape, passing),
            read.prefilter,
            read.postfilter,
        )

    def _read_query(
        self, request: VectorQuery, deadline: Deadline, *, resident_only: bool
    ) -> _ReadQuery:
        """Read the texts of a query: once, though it is run again where it may wait."""
        if resident_only and is_long(request.filter):
            raise NotResidentError("a long filter takes long to read")
        key = request.parameters
        found = self._read.get(key)
        if found is None:
            column = self._column_search(request, resident_only=resident_only)
            found = self._read_texts(request, column, deadline)
            self._read.keep(key, found, request.texts, request.params)
        return found

    def _read_texts(
        self, request: VectorQuery, column: ColumnSearch, deadline: Deadline
    ) -> _ReadQuery:
        session, snapshot = self._session, self._snapshot
        shape = shape_of_answer(
            snapshot.schema,
            request,
            batched=is_batched(request, column),
            check=partial(deadline.check, "reading expressions"),
        )
        prefilter, postfilter = None, None
        if request.filter is not None and request.prefilter:
            prefilter = RowFilter(
                session,
                snapshot,
                request.filter,
                deadline,
                params=request.params,
                covered_only=request.fast_search,
                index_use=IndexUse.ALWAYS if request.use_index else IndexUse.IF_SOUND,
            )
        elif request.filter is not None:
            postfilter = Postfilter(
                session, snapshot, request.filter, deadline, params=request.params
            )
        return _ReadQuery(column, shape, prefilter, postfilter)

    def _passing_counts(
        self, prefilter: RowFilter, deadline: Deadline, *, resident_only: bool
    ) -> PassingCounts:
        fragment_ids = list(self._snapshot.fragments_by_id)
        if resident_only:
            prefilter.require_resident(fragment_ids)
        passing = prefilter.passing(fragment_ids, deadline)
        num_rows = {each: passing[each].num_rows for each in passing}
        steps = prefilter.steps(deadline, resident_only=resident_only)
        return PassingCounts(prefilter.text, num_rows, steps)

    def _plan_vector(
        self,
        request: VectorQuery,
        column: ColumnSearch,
        shape: AnswerShape,
        passing: PassingCounts | None,
    ) -> VectorPlan:
        metric = metric_for(column.vectors, request.metric)
        return plan_vector(
            request,
            column.choice(metric, use_index=request.use_index),
            column=column.vectors.field.name,
            columns=shape.columns,
            num_rows=self.count_rows(),
            passing=passing,
            few_rows=self._session.few_rows,
            is_multi=column.vectors.type.is_multi,
        )

    def _column_search(self, request: VectorQuery, *, resident_only: bool) -> ColumnSearch:
        key = (request.column, request.dimension)
        found = self._asked.get(key)
        if found is None:
            if resident_only:
                raise NotResidentError("index headers have to be read")
            field = find_vector_field(self._snapshot.schema, request.column, request.dimension)
            found = self.open_column(field, skips_damage=not request.use_index)
            if not found.is_damaged:
                self._asked[key] = found
        return found


def is_batched(request: VectorQuery, column: ColumnSearch) -> bool:
    """Tell whether the answer says which query a row answers.

    Where rows hold lists, several vectors are one query, as to pylance 14.0.2.
    """
    is_one_query = column.vectors.type.is_multi and request.vectors is not None
    return request.batched and not is_one_query
