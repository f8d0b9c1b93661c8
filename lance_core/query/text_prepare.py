"""From a text query to what runs it: columns, their indices, filters, and the columns to return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.index.text.queries import PhraseQuery
from lance_core.query.answer_shape import SCORE_FIELD
from lance_core.query.indexed_filter import IndexUse
from lance_core.query.measure import UNMEASURED
from lance_core.query.plan import Prefilter
from lance_core.query.postfilter import Postfilter
from lance_core.query.prepared import PreparedQueries, is_long
from lance_core.query.ranked_shape import DOC_INDEX_FIELD, RankedShape
from lance_core.query.residency import NotResidentError
from lance_core.query.row_filter import RowFilter
from lance_core.query.steps import PREFILTER
from lance_core.query.text_column import TextColumn
from lance_core.query.text_plan import names_no_column, plan_text, text_leaves
from lance_core.scan.take import RowTaker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lance_core.query.deadline import Deadline
    from lance_core.query.measure import Measures
    from lance_core.query.plan import TextLeaf, TextPlan
    from lance_core.query.session import Session
    from lance_core.query.text_request import TextQuery
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class TextParts:
    """Everything about a text query that its words do not decide."""

    shape: RankedShape
    taker: RowTaker
    row_filter: RowFilter | None
    prefilter: Prefilter | None
    postfilter: Postfilter | None


@dataclass(frozen=True, slots=True, eq=False)
class PreparedText:
    """A text query, ready to be run."""

    plan: TextPlan
    columns: Mapping[str, TextColumn]
    parts: TextParts


class TextPreparer:
    """Prepares the text queries of one version; safe to share between threads.

    Parameters
    ----------
    session, snapshot
        Cache and opened files, and the version.
    """

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot
        self._columns: dict[str, TextColumn] = {}
        self._default_columns: tuple[str, ...] | None = None
        self._kept: PreparedQueries[TextParts] = PreparedQueries()

    def prepare(
        self,
        request: TextQuery,
        deadline: Deadline,
        measures: Measures = UNMEASURED,
        *,
        resident_only: bool,
    ) -> PreparedText:
        """Prepare one query.

        Parameters
        ----------
        request
            The query.
        deadline
            Looked at while filters are read and rows judged.
        measures
            Receives what judging rows took.
        resident_only
            Raise ``NotResidentError`` rather than open segments or judge rows.

        Raises
        ------
        UnknownColumnError
            The table has no such column.
        TypeMismatchError
            A column holds no texts.
        InvalidRequestError
            No column is named and none has an index, an index cannot answer a phrase, or the
            request does not fit the schema otherwise.
        """
        default_columns: tuple[str, ...] = ()
        if names_no_column(request.query):
            default_columns = self._indexed_columns(resident_only=resident_only)
        leaves = text_leaves(request.query, default_columns)
        columns = self._columns_of(leaves, resident_only=resident_only)
        by_element = _by_element(columns)
        for leaf in leaves:
            if isinstance(leaf.query, PhraseQuery):
                columns[leaf.columns[0]].require_positions(use_index=request.use_index)
        parts = self._parts(
            request, deadline, measures, by_element=by_element, resident_only=resident_only
        )
        plan = plan_text(
            request,
            leaves,
            {name: column.choice(use_index=request.use_index) for name, column in columns.items()},
            default_columns=default_columns,
            columns=parts.shape.names,
            by_element=by_element,
            prefilter=parts.prefilter,
        )
        return PreparedText(plan, columns, parts)

    def _indexed_columns(self, *, resident_only: bool) -> tuple[str, ...]:
        """Return the columns with an inverted index, in the order of the schema."""
        if self._default_columns is None:
            schema, snapshot = self._snapshot.schema, self._snapshot
            indexed = {each.field_ids[0] for each in snapshot.indices if len(each.field_ids) == 1}
            paths = [schema.path_of(each.id) for each in schema.walk() if each.id in indexed]
            found = []
            for path in paths:
                try:
                    column = self._column(path, resident_only=resident_only)
                except TypeMismatchError:
                    continue
                if column.is_indexed:
                    found.append(path)
            self._default_columns = tuple(found)
        return self._default_columns

    def _columns_of(
        self, leaves: Iterable[TextLeaf], *, resident_only: bool
    ) -> dict[str, TextColumn]:
        names = dict.fromkeys(name for leaf in leaves for name in leaf.columns)
        return {name: self._column(name, resident_only=resident_only) for name in names}

    def _column(self, path: str, *, resident_only: bool) -> TextColumn:
        known = self._columns.get(path)
        if known is None:
            if resident_only:
                raise NotResidentError("index headers have to be read")
            field = self._snapshot.schema.field(path)
            fresh = TextColumn(self._session, self._snapshot, path, field)
            known = self._columns.setdefault(path, fresh)
        return known

    def _parts(
        self,
        request: TextQuery,
        deadline: Deadline,
        measures: Measures,
        *,
        by_element: bool,
        resident_only: bool,
    ) -> TextParts:
        if resident_only and is_long(request.filter):
            raise NotResidentError("a long filter takes long to read")
        key = (request.parameters, by_element)
        found = self._kept.get(key)
        if found is None:
            found = self._make(
                request, deadline, measures, by_element=by_element, resident_only=resident_only
            )
            self._kept.keep(key, found, request.texts, request.params)
        return found

    def _make(
        self,
        request: TextQuery,
        deadline: Deadline,
        measures: Measures,
        *,
        by_element: bool,
        resident_only: bool,
    ) -> TextParts:
        session, snapshot = self._session, self._snapshot
        shape = RankedShape.of(
            snapshot.schema,
            request.columns,
            (DOC_INDEX_FIELD, SCORE_FIELD) if by_element else (SCORE_FIELD,),
            deadline,
            with_row_id=request.with_row_id,
            params=request.params,
        )
        taker = RowTaker(session.files, snapshot, shape.stored)
        if request.filter is None:
            return TextParts(shape, taker, None, None, None)
        if not request.prefilter:
            postfilter = Postfilter(
                session,
                snapshot,
                request.filter,
                deadline,
                params=request.params,
                found=(SCORE_FIELD,),
            )
            return TextParts(shape, taker, None, None, postfilter)
        row_filter = RowFilter(
            session,
            snapshot,
            request.filter,
            deadline,
            params=request.params,
            covered_only=request.fast_search,
            index_use=IndexUse.ALWAYS if request.use_index else IndexUse.IF_SOUND,
        )
        with measures.measure(PREFILTER) as facts:
            prefilter = self._prefilter(row_filter, deadline, resident_only=resident_only)
            facts.rows = prefilter.num_rows
        return TextParts(shape, taker, row_filter, prefilter, None)

    def _prefilter(
        self, row_filter: RowFilter, deadline: Deadline, *, resident_only: bool
    ) -> Prefilter:
        fragment_ids = list(self._snapshot.fragments_by_id)
        if resident_only:
            row_filter.require_resident(fragment_ids)
        passing = row_filter.passing(fragment_ids, deadline)
        num_rows = sum(each.num_rows for each in passing.values())
        steps = row_filter.steps(deadline, resident_only=resident_only)
        return Prefilter(row_filter.text, num_rows, steps)


def _by_element(columns: Mapping[str, TextColumn]) -> bool:
    """Tell whether each element of a list is found by itself, which then goes for all columns."""
    by_element = [name for name, column in columns.items() if column.manner.by_element]
    if by_element and len(columns) > 1:
        raise InvalidRequestError(
            f'column "{by_element[0]}" is indexed by elements of its lists, which are no rows: look'
            " in it alone"
        )
    return len(by_element) > 0
