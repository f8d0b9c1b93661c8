"""A search of many vectors in parts: each may run in another process, and their finds be joined.

What is joined equals what one search finds: rows that a part drops are no nearer than those that it
keeps, whatever other parts hold.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.quantizer import SearchOptions
from lance_core.io.file_maps import seldom_checked
from lance_core.query.fitted_vectors import unit_vector
from lance_core.query.merge import NO_CANDIDATES, merge
from lance_core.query.plan import FlatSearch
from lance_core.query.query_result import joined, vector_answer
from lance_core.query.vector_search import VectorSearch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.index.candidates import Candidates
    from lance_core.query.answer_shape import AnswerShape
    from lance_core.query.column_search import ColumnSearch
    from lance_core.query.deadline import Deadline
    from lance_core.query.measure import Measures
    from lance_core.query.plan import VectorPlan
    from lance_core.query.row_filter import RowFilter
    from lance_core.scan.take import RowTaker

_WHOLE_KINDS = frozenset({"IVF_RQ"})
"""What such a segment finds depends on all partitions together: signs rule rows out by the rows
that were found before."""


class SplitSearch(VectorSearch):
    """The parts of one search; belongs to one thread. Made by `QueryEngine.split`.

    Parameters
    ----------
    column, plan, row_filter, requested_k, deadline, measures
        See `VectorSearch`.
    queries
        Shape ``(d,)`` each, as the column could hold them.
    shape, taker
        The columns of the answer, and what reads them.

    Raises
    ------
    InvalidRequestError
        Distances are bounded, an offset or a postfilter is given: such a search has no parts.
    """

    def __init__(
        self,
        column: ColumnSearch,
        plan: VectorPlan,
        row_filter: RowFilter | None,
        *,
        requested_k: int,
        deadline: Deadline,
        measures: Measures,
        queries: Sequence[NDArray[np.float32]],
        shape: AnswerShape,
        taker: RowTaker,
    ) -> None:
        super().__init__(
            column,
            plan,
            row_filter,
            requested_k=requested_k,
            deadline=deadline,
            measures=measures,
        )
        if plan.has_bounds or plan.offset > 0 or plan.postfilter is not None:
            raise InvalidRequestError(
                "bounds of distances, an offset and filters that follow the search are for searches"
                " in one piece"
            )
        self.plan = plan
        self._queries = queries
        self._shape = shape
        self._taker = taker

    @property
    def num_queries(self) -> int:
        """How many vectors are searched by."""
        return len(self._queries)

    @property
    def schema(self) -> pa.Schema:
        """Columns of `answer`."""
        return self._shape.schema

    @property
    def has_parts(self) -> bool:
        """Whether there are parts: not where single rows that pass a filter are scored.

        Nor where rows hold lists of vectors: they are ranked by all that a query finds.
        """
        return self.plan.k > 0 and self.plan.listed is None and not self.takes_lists

    @property
    def takes_lists(self) -> bool:
        """Whether rows hold lists of vectors, so that several vectors are one query."""
        return self._column.vectors.type.is_multi

    @property
    def lengths(self) -> list[NDArray[np.int64]]:
        """Rows of each partition, segment by segment, shape ``(P,)`` each."""
        return [
            bound.partitions.segment.lengths.astype(np.int64)
            for _, bound, _ in self._bound_searches()
        ]

    def is_whole(self, place: int) -> bool:
        """Tell whether all that a query probes in a segment has to be searched together."""
        return self.plan.searches[place].segment.kind in _WHOLE_KINDS

    def first_probes(self) -> Iterator[list[NDArray[np.int64]]]:
        """Yield for each query which partitions of each segment it probes, nearest first."""
        for query in self._queries:
            yield [search.initial(self._requested_k) for search in self._segment_searches(query)]

    def search_partitions(
        self, place: int, chosen: Sequence[NDArray[np.int64]]
    ) -> list[Candidates]:
        """Search partitions of one segment for all queries.

        Parameters
        ----------
        place
            The segment among those of the plan.
        chosen
            Partitions for each query, in the order of `first_probes`; none = it finds nothing.

        Returns
        -------
        list[Candidates]
            Of each query as many rows as the whole segment might give.
        """
        search, bound, mask = self._bound_searches()[place]
        every = np.unique(np.concatenate([np.empty(0, np.int64), *chosen]))
        held = bound.hold(every, resident_only=False)
        options = SearchOptions(search.k, ef=self.plan.ef, approx_mode=self.plan.approx_mode)
        found = []
        with seldom_checked():
            for query, own in zip(self._queries, chosen, strict=True):
                if len(own) == 0:
                    found.append(NO_CANDIDATES)
                    continue
                self._deadline.check("searching partitions")
                part = held.pick(np.searchsorted(every, own))
                asked = self._as_searched(query)
                found.append(bound.partitions.search(part, asked, mask.words, options))
        return found

    def search_fragments(self, fragments: BitMap) -> list[Candidates]:
        """Search some of the fragments that no index covers, exactly, for all queries."""
        flat = self.plan.flat
        if flat is None:
            raise InvalidRequestError("no fragment is left to exact search")
        part = FlatSearch(fragments & flat.fragments, flat.k, flat.reason)
        return self._search_flat(part, self._queries, [NO_CANDIDATES] * self.num_queries)

    def join(
        self, of_segments: Sequence[Sequence[Candidates]], of_fragments: Sequence[Candidates]
    ) -> list[Candidates]:
        """Make answers of what the parts found.

        Queries that may probe further partitions, and have found too few rows, are searched by
        anew, in one piece.

        Parameters
        ----------
        of_segments
            For each query, what each part of a segment found.
        of_fragments
            For each query, what is nearest of the fragments without index.
        """
        parts = zip(self._queries, of_segments, of_fragments, strict=True)
        with seldom_checked():
            return [self._join(query, segments, flat) for query, segments, flat in parts]

    def search_whole(self) -> list[Candidates]:
        """Search by all queries in one piece."""
        return self.run(self._queries)

    def answer(self, found: Sequence[Candidates]) -> pa.Table:
        """Read the columns of the rows found; ``query_index`` counts the queries from 0."""
        row_ids = joined([np.empty(0, np.uint64), *(each.row_ids for each in found)])
        stored = self._taker.take_values(self._column.addresses(row_ids))
        check = partial(self._deadline.check, "computing columns")
        return vector_answer(stored, found, self._shape, batched=True, check=check).to_table()

    def _join(
        self, query: NDArray[np.float32], segments: Iterable[Candidates], flat: Candidates
    ) -> Candidates:
        plan = self.plan
        if not plan.searches:
            return flat.first(plan.num_ranked)
        rescore = plan.rescore
        keep = plan.num_ranked if rescore is None else rescore.candidates
        found = merge(list(segments), keep)
        if len(found) < plan.num_ranked and self._may_probe_more:
            return self.run([query])[0]
        if rescore is not None:
            found = self._rescored(found, query, rescore.k)
        return merge([found, flat], plan.num_ranked)

    @cached_property
    def _may_probe_more(self) -> bool:
        return any(not search.probes.is_fixed for search in self.plan.searches)

    def _as_searched(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        return unit_vector(self._column.vectors, query) if self.plan.metric == "cosine" else query
