"""What can be read of a dataset at one version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.dataset.places import branch_of, told_below
from lance_core.dataset.query_arguments import (
    answer_columns,
    as_numbers,
    as_vectors,
    column_names,
    orders_of,
    row_ids_of,
)
from lance_core.index.text.queries import text_query
from lance_core.operations.index_arguments import checked_fragment_ids
from lance_core.query.deadline import NO_DEADLINE, Deadline
from lance_core.query.engine import QueryEngine, Request
from lance_core.query.prewarm import ignore_progress, scalar_field
from lance_core.query.prewarm_scalar import warm_scalar_index
from lance_core.query.prewarm_text import is_text_index, warm_text_index
from lance_core.query.request import ScanQuery, VectorQuery
from lance_core.query.request_checks import check_filter, check_whole, checked_params
from lance_core.query.text_request import TextQuery
from lance_core.scan.projection import resolve_projection
from lance_core.scan.row_names import addresses_of
from lance_core.scan.take import take_rows
from lance_core.schema.arrow import to_arrow_schema
from lance_core.table.snapshot import VersionInfo, list_versions
from lance_core.table.versions import latest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from numpy.typing import ArrayLike

    from lance_core.cache.figures import StoreFigures
    from lance_core.index.text.queries import TextNode
    from lance_core.index.vector.quantizer import ApproxMode
    from lance_core.query.plain_scan import PlainScan
    from lance_core.query.prewarm import Prewarmed
    from lance_core.query.query_result import QueryResult
    from lance_core.query.session import Session
    from lance_core.query.split_search import SplitSearch
    from lance_core.scan.ordering import OrderBy
    from lance_core.scan.row_names import RowName
    from lance_core.table.snapshot import Snapshot


class DatasetReads:
    """One immutable version of a dataset, to read from; safe to share between threads."""

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self.session = session
        self.snapshot = snapshot
        self._engine = QueryEngine(session, snapshot)

    def __repr__(self) -> str:
        return f"Dataset({self.uri!r}, version={self.version})"

    @property
    def uri(self) -> str:
        """Where the dataset lies."""
        return self.snapshot.scheduler.store.uri

    @property
    def version(self) -> int:
        """Number of the version that is open."""
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the table."""
        return to_arrow_schema(self.snapshot.schema)

    def count_rows(
        self,
        filter: str | None = None,
        *,
        params: Mapping[str, object] | None = None,
        deadline: Deadline = NO_DEADLINE,
        use_index: bool = True,
    ) -> int:
        """Return the number of live rows, or of those for which a filter is true.

        Parameters
        ----------
        filter, params, use_index
            See `scan`.
        deadline
            Looked at while rows are judged.

        Raises
        ------
        InvalidRequestError
            The filter is none, or does not fit the schema.
        """
        check_filter(filter)
        values = checked_params(params)
        if filter is None:
            return self._engine.count_rows()
        return self._engine.count(filter, values, deadline, use_index=use_index)

    def versions(self) -> list[VersionInfo]:
        """Describe all versions, oldest first; reads every manifest."""
        with told_below(branch_of(self.snapshot)):
            return list_versions(self.snapshot.scheduler)

    def latest_version(self) -> int:
        """Return the number of the newest version, which may be newer than this one."""
        return latest_version(self.snapshot.scheduler.store)

    def search(
        self,
        vector: ArrayLike | None = None,
        k: int | None = 10,
        *,
        row_ids: int | Sequence[int] | None = None,
        column: str | None = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        metric: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        offset: int = 0,
        use_index: bool = True,
        fast_search: bool = False,
        with_row_id: bool = False,
        filter: str | None = None,
        params: Mapping[str, object] | None = None,
        prefilter: bool = True,
        ef: int | None = None,
        approx_mode: ApproxMode = "normal",
    ) -> pa.Table:
        """Find the rows nearest to a vector, or to another row.

        Parameters
        ----------
        vector
            Shape ``(d,)``, or ``(m, d)`` for several queries at once: the answer then begins with
            the column ``query_index``. Where rows hold lists of vectors, these are the vectors of
            one query. For columns of uint8 it holds whole numbers from 0 to 255.
        k
            Rows wanted per query vector; None = all.
        row_ids
            Instead of ``vector``: the id of a row, whose stored vector is the query, or several at
            once. No row is among its own neighbours.
        column
            Vector column; None = the only one of that dimension.
        columns
            Columns of the answer, or expressions by name (``{"twice": "price * 2"}``), which may
            use ``_distance``; None = all. ``_distance`` is added.
        metric
            ``l2`` (squared), ``cosine`` or ``dot``, for uint8 ``hamming``; None = that of the
            index, else ``l2`` or ``hamming``.
        nprobes
            Partitions to search per segment; None = chosen by how close the centroids are.
        minimum_nprobes, maximum_nprobes
            Bounds for that choice.
        refine_factor
            Re-rank ``k * refine_factor`` candidates by exact distance.
        lower_bound, upper_bound
            Keep ``lower_bound <= distance < upper_bound``.
        offset
            Rows to skip after ranking.
        use_index
            False: exact search over all rows.
        fast_search
            True: only rows that an index covers.
        with_row_id
            Add the column ``_rowid``.
        filter
            Predicate that rows have to fulfil, such as ``price < 10``; see `lance_core.expr`. At
            most 1 MiB of text and 5000 comparisons, a long ``IN`` list being one.
        params
            Values of the ``$name`` in the filter.
        prefilter
            True: the nearest ``k`` of the rows that pass. False: those that pass of the nearest
            ``k``; the filter may then name ``_distance``.
        ef
            Breadth of graph searches; None = one and a half times the rows looked for.
        approx_mode
            ``normal``, ``fast`` or ``accurate``, where an index can be searched in several ways.

        Returns
        -------
        pyarrow.Table
            Nearest rows first, ties by row id.

        Raises
        ------
        InvalidRequestError
            A parameter is wrong in itself or does not fit the schema.

        Notes
        -----
        The query is rounded to the type of the column, as by pylance 14.0.2; distances are exact
        for what it is rounded to. A vector that holds an infinity has a distance, infinite or with
        ``dot`` also the least there is, but no index has it. It is found by exact search, and so
        are those of rows that no index covers, that a filter leaves few of, and that are looked for
        as the index has too few rows. pylance finds it in the first two cases only.
        """
        vectors = None if vector is None else as_vectors(vector)
        is_one = vectors.ndim == 1 if vectors is not None else not isinstance(row_ids, Iterable)
        request = VectorQuery(
            vectors=None if vectors is None else np.atleast_2d(vectors),
            k=k,
            column=column,
            columns=answer_columns(columns),
            metric=metric,
            min_probes=nprobes if minimum_nprobes is None else minimum_nprobes,
            max_probes=nprobes if maximum_nprobes is None else maximum_nprobes,
            refine_factor=refine_factor,
            lower_bound=lower_bound,
            upper_bound=upper_bound,
            offset=offset,
            use_index=use_index,
            fast_search=fast_search,
            with_row_id=with_row_id,
            batched=not is_one,
            filter=filter,
            params=params,
            prefilter=prefilter,
            row_ids=row_ids_of(row_ids),
            ef=ef,
            approx_mode=approx_mode,
        )
        return self.run(request).table

    def search_text(
        self,
        query: str | TextNode,
        k: int | None = 10,
        *,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        params: Mapping[str, object] | None = None,
        prefilter: bool = True,
        offset: int = 0,
        with_row_id: bool = False,
        fast_search: bool = False,
        use_index: bool = True,
    ) -> pa.Table:
        """Find the rows whose texts fit some words best, by their BM25 score.

        Parameters
        ----------
        query
            Words to look for in all columns that have an inverted index, in double quotes one after
            the other; or a query of `lance_core.index.text.queries`.
        k
            Rows wanted; None = all that are found.
        columns
            Columns of the answer, or expressions by name, which may use ``_score``; None = all.
            ``_score`` is added, and ``_doc_index`` where each element of a list is found by itself.
        filter, params
            See `search`.
        prefilter
            True: the best ``k`` of the rows that pass. False: those that pass of the best ``k``;
            the filter may then name ``_score``.
        offset
            Rows to skip after ranking.
        with_row_id
            Add the column ``_rowid``.
        fast_search
            True: only rows that an index covers.
        use_index
            False: read the texts of all rows.

        Returns
        -------
        pyarrow.Table
            Best rows first, ties by row id.

        Raises
        ------
        InvalidRequestError
            A parameter is wrong in itself or does not fit the schema, or no column is named and
            none has an index.
        """
        request = TextQuery(
            query=text_query(query) if isinstance(query, str) else query,
            k=k,
            columns=answer_columns(columns),
            filter=filter,
            params=params,
            prefilter=prefilter,
            offset=offset,
            with_row_id=with_row_id,
            fast_search=fast_search,
            use_index=use_index,
        )
        return self.run(request).table

    def scan(
        self,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        *,
        filter: str | None = None,
        params: Mapping[str, object] | None = None,
        order_by: Sequence[str | OrderBy] = (),
        limit: int | None = None,
        offset: int = 0,
        with_row_id: bool = False,
        batch_rows: int = 8192,
        use_index: bool = True,
        fast_search: bool = False,
        fragment_ids: Iterable[int] | None = None,
    ) -> pa.RecordBatchReader:
        """Stream rows; a few pieces of some megabytes are decoded ahead.

        Parameters
        ----------
        columns
            Columns of the answer; with a mapping its keys, computed by the expressions it holds,
            such as ``{"double": "price * 2"}``. None = all columns.
        filter
            Only rows for which this is true, such as ``price < 10``; see `lance_core.expr`. Columns
            that it does not name are read only of rows that pass.
        params
            Values of the ``$name`` in filter and expressions.
        order_by
            Columns to order rows by, the first counting most; a name alone means ascending, nulls
            last. Ties stay in table order. Memory holds the order's columns of as many rows as are
            wanted, without ``limit`` those of all rows.
        limit, offset
            Most rows to return, and rows to skip before; of those that pass, in their order.
        with_row_id
            Add the column ``_rowid``.
        batch_rows
            Rows of a batch at most.
        use_index
            False: read all rows to find those that pass the filter.
        fast_search
            Leave out rows that the indices do not cover which the filter asks, if it asks any.
        fragment_ids
            Only rows of these fragments, without limit and offset; None = of all.

        Raises
        ------
        InvalidRequestError
            A parameter is wrong in itself or does not fit the schema.
        """
        request = ScanQuery(
            columns=answer_columns(columns),
            limit=limit,
            offset=offset,
            with_row_id=with_row_id,
            filter=filter,
            params=params,
            order_by=orders_of(order_by),
            use_index=use_index,
            fast_search=fast_search,
            fragment_ids=None if fragment_ids is None else checked_fragment_ids(fragment_ids),
        )
        scan = self.scan_of(request, batch_rows=batch_rows)
        return pa.RecordBatchReader.from_batches(scan.schema, scan.batches())

    def scan_of(
        self,
        request: ScanQuery,
        deadline: Callable[[], Deadline] = lambda: NO_DEADLINE,
        *,
        batch_rows: int = 8192,
    ) -> PlainScan:
        """Return a plain query, ready to be read; ``deadline`` is asked for as it goes on."""
        check_whole("batch_rows", batch_rows, 1)
        return self._engine.scan(request, deadline, batch_rows=batch_rows)

    def take(
        self,
        indices: ArrayLike,
        columns: Sequence[str] | None = None,
        *,
        by: RowName = "offset",
    ) -> pa.Table:
        """Read some rows, in the order given.

        Parameters
        ----------
        indices
            Shape ``(n,)``: names of rows; repeats are allowed.
        columns
            Columns of the answer; None = all.
        by
            What names a row: ``offset`` is its rank among the live rows, from 0; ``row_id`` and
            ``address`` are what the columns ``_rowid`` and ``_rowaddr`` hold.

        Raises
        ------
        InvalidRequestError
            There is no such row, or it is deleted.
        """
        files, snapshot = self.session.files, self.snapshot
        return take_rows(
            files,
            snapshot,
            addresses_of(files, snapshot, as_numbers(indices), by),
            resolve_projection(snapshot.schema, column_names(columns)),
            check_live=by != "offset",
        )

    def run(
        self,
        request: Request,
        deadline: Deadline = NO_DEADLINE,
        *,
        resident_only: bool = False,
    ) -> QueryResult:
        """Answer a request; see `QueryEngine.run`."""
        return self._engine.run(request, deadline, resident_only=resident_only)

    def split(self, request: VectorQuery, deadline: Deadline = NO_DEADLINE) -> SplitSearch:
        """Return the parts of a search by many vectors, to be run in any number of processes.

        Parameters
        ----------
        request
            A batch of queries, without bounds, offset or postfilter.
        deadline
            Looked at between pieces of work.

        Raises
        ------
        InvalidRequestError
            The request does not fit the schema, or cannot be answered in parts.
        """
        return self._engine.split(request, deadline)

    def prewarm(
        self,
        index: str,
        partitions: Sequence[int] | None = None,
        *,
        progress: Callable[[Prewarmed], object] = ignore_progress,
        deadline: Deadline = NO_DEADLINE,
    ) -> Prewarmed:
        """Load an index into memory, so that queries find it there.

        Stops where more would not fit into the cache and says so. A query that needs a partition
        which is being loaded waits for it instead of loading it too.

        Parameters
        ----------
        index
            Name of the index.
        partitions
            Partitions of each of its segments; None = all. Only those of vectors can be named.
        progress
            Called after each piece of some megabytes with how far it is.
        deadline
            Looked at between pieces.

        Raises
        ------
        IndexNotFoundError
            There is no such index.
        InvalidRequestError
            No segment has such a partition.
        UnsupportedFeatureError
            It is an index of several columns.
        """
        field_id = scalar_field(self.snapshot, index)
        if field_id is None:
            return self._engine.prewarm(index, partitions, progress, deadline)
        warm = warm_text_index if is_text_index(self.snapshot, index) else warm_scalar_index
        return warm(self.session, self.snapshot, field_id, index, partitions, progress, deadline)

    @property
    def cache_stats(self) -> StoreFigures:
        """What the session's cache holds and has done for this dataset, all versions together.

        Datasets at the same place with other storage options are others.
        """
        return self.session.cache.figures_of(self.snapshot.scheduler.store.key)

    def _at(self, snapshot: Snapshot) -> Self:
        """Return the dataset at another version."""
        return type(self)(self.session, snapshot)
