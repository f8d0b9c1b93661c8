"""Plan nodes: what a query is going to do, as data that can be shown, compared and run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.query.hybrid_plan import HybridPlan

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lance_core.index.text.queries import (
        CombinedFieldsQuery,
        MatchQuery,
        PhraseQuery,
        TextNode,
    )
    from lance_core.index.vector.quantizer import ApproxMode
    from lance_core.query.filter_steps import FilterSteps
    from lance_core.query.probes import ProbeBounds


@dataclass(frozen=True, slots=True, eq=False)
class SegmentDescription:
    """What the planner knows of one index segment, without having loaded it.

    ``coverage`` holds the live fragments that the segment answers for. A segment with a ``reason``
    cannot be used; its fragments are scanned.
    """

    index_name: str
    uuid: str
    kind: str
    metric: str
    coverage: BitMap
    num_partitions: int
    created_at_ms: int | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SkippedSegment:
    """A segment that the plan leaves out, and why."""

    index_name: str
    uuid: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class IndexChoice:
    """The index that answers a metric, and what it leaves to exact search.

    ``uncovered`` holds the fragments that no used segment answers for.
    """

    metric: str
    segments: tuple[SegmentDescription, ...]
    skipped: tuple[SkippedSegment, ...]
    uncovered: BitMap


@dataclass(frozen=True, slots=True, eq=False)
class IndexSearch:
    """Search one segment for its nearest ``k`` rows by the quantiser's distance."""

    segment: SegmentDescription
    probes: ProbeBounds
    k: int


@dataclass(frozen=True, slots=True, eq=False)
class FlatSearch:
    """Score every live row of some fragments exactly and keep the nearest ``k``."""

    fragments: BitMap
    k: int
    reason: str

    @property
    def key(self) -> bytes:
        """Name the fragments in cache keys."""
        return bytes(self.fragments.serialize())


@dataclass(frozen=True, slots=True)
class Prefilter:
    """Let only rows pass for which a filter is true, before any takes a place in a ranking.

    ``num_rows`` are those that pass; ``steps`` tells how they were found, None where nobody asked.
    """

    text: str
    num_rows: int
    steps: FilterSteps | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ListedSearch:
    """Score just the rows that pass the prefilter exactly and keep the nearest ``k``.

    Takes the place of all other searches. ``fragments`` are those whose rows count.
    """

    fragments: BitMap
    num_rows: int
    k: int
    reason: str

    @property
    def key(self) -> bytes:
        """Name the fragments in cache keys."""
        return bytes(self.fragments.serialize())


@dataclass(frozen=True, slots=True)
class Rescore:
    """Replace the distances of the nearest ``candidates`` index rows by exact ones, keep ``k``.

    ``reason`` is ``refine`` when the caller asked for it, and ``mixed`` when exact distances of
    uncovered fragments are to be compared with them.
    """

    candidates: int
    k: int
    reason: str


@dataclass(frozen=True, slots=True)
class RankByHits:
    """Rank rows that hold lists by the nearest ``hits`` of each query vector, keep ``k``.

    The searches find vectors then, not rows.
    """

    hits: int
    k: int


@dataclass(frozen=True, slots=True, eq=False)
class VectorPlan:
    """A vector query: index searches, an exact search of the rest, merge, range, columns.

    ``searches`` are merged by distance, or by ``rank_by_hits``, their distances replaced by exact
    ones when ``rescore`` is set, then merged with the rows of ``flat``; or ``listed`` finds all.
    Searches see only rows that pass ``prefilter``. Of the rows inside the bounds the nearest
    ``num_ranked`` are kept, those that do not pass ``postfilter`` left out, ``offset`` rows skipped
    and ``k`` returned with ``columns``. ``few_rows`` bounds the rows that may be scored one by one
    because the index does not hold them. ``has_itself`` tells that one more row is looked for, the
    one that is asked about and is not among the answer. ``fragments_left_out`` are those without
    index that a fast search does not look at.

    The bounds cut the distances of the answer: exact ones where ``rescore`` is set, which index
    searches then know nothing of, else what the index estimates.
    """

    column: str
    metric: str
    searches: tuple[IndexSearch, ...]
    skipped: tuple[SkippedSegment, ...]
    flat: FlatSearch | None
    rescore: Rescore | None
    lower_bound: float | None
    upper_bound: float | None
    offset: int
    k: int
    columns: tuple[str, ...]
    few_rows: int = 0
    has_itself: bool = False
    fragments_left_out: int = 0
    prefilter: Prefilter | None = None
    listed: ListedSearch | None = None
    rank_by_hits: RankByHits | None = None
    postfilter: str | None = None
    ef: int | None = None
    approx_mode: ApproxMode = "normal"

    @property
    def all_skipped(self) -> tuple[SkippedSegment, ...]:
        """Segments that are left out by the search or its filter."""
        steps = None if self.prefilter is None else self.prefilter.steps
        return self.skipped if steps is None else (*self.skipped, *steps.skipped)

    @property
    def num_ranked(self) -> int:
        """Rows to rank before some of them are left out or skipped."""
        return self.offset + self.k + int(self.has_itself)

    @property
    def has_bounds(self) -> bool:
        """Whether distances are bounded on a side."""
        return self.lower_bound is not None or self.upper_bound is not None

    @property
    def is_exact(self) -> bool:
        """True when every distance in the answer is computed from stored vectors."""
        if self.rescore is not None:
            return True
        return self.rank_by_hits is None and all(
            search.segment.kind == "IVF_FLAT" for search in self.searches
        )


@dataclass(frozen=True, slots=True)
class TextLeaf:
    """A search for the tokens of one text, in one column or in several taken as one.

    ``step`` is its name among measures.
    """

    step: str
    query: MatchQuery | PhraseQuery | CombinedFieldsQuery
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TextSource:
    """Where the texts of a column are looked for.

    ``segments`` answer for what they cover, texts of the fragments ``flat`` are read; ``reason``
    tells why these are, and is empty where there are none.
    """

    column: str
    segments: tuple[SegmentDescription, ...]
    flat: BitMap
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class TextPlan:
    """A text query: searches for tokens, scores of these as one, a ranking, columns.

    ``leaves`` are what ``query`` is made of, each once; those without a column of their own look in
    ``default_columns``, of which the best counts. Only rows that pass ``prefilter`` are found. Of
    these the best ``offset + k`` are ranked, all if ``k`` is None, those left out that do not pass
    ``postfilter``, ``offset`` skipped, the rest returned with ``columns``. With ``by_element`` each
    element of a list is found by itself. ``fragments_left_out`` are those without index that a fast
    search does not look at.
    """

    query: TextNode
    leaves: tuple[TextLeaf, ...]
    default_columns: tuple[str, ...]
    sources: tuple[TextSource, ...]
    skipped: tuple[SkippedSegment, ...]
    offset: int
    k: int | None
    columns: tuple[str, ...]
    by_element: bool = False
    fragments_left_out: int = 0
    prefilter: Prefilter | None = None
    postfilter: str | None = None

    @property
    def all_skipped(self) -> tuple[SkippedSegment, ...]:
        """Segments that are left out by the search or its filter."""
        steps = None if self.prefilter is None else self.prefilter.steps
        return self.skipped if steps is None else (*self.skipped, *steps.skipped)

    @property
    def num_ranked(self) -> int | None:
        """Rows to rank before some of them are left out or skipped; None = all."""
        return None if self.k is None else self.offset + self.k

    def columns_of(self, leaf: MatchQuery | PhraseQuery) -> tuple[str, ...]:
        """Return the columns that a part of the query looks in, each by itself."""
        return self.default_columns if leaf.column is None else (leaf.column,)


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A plain query: rows in table order or by columns.

    The columns ``scanned`` are read of all rows, or where ``filter`` is set of those that have to
    be judged; ``late`` ones only of rows that are returned. Rows that pass are put in order by
    ``order_by``, ``offset`` of them skipped, ``limit`` returned with ``columns``, some of which are
    made of what was read if ``is_computed``. ``steps`` tells what indices say of the filter.
    """

    columns: tuple[str, ...]
    num_fragments: int
    offset: int
    limit: int | None
    scanned: tuple[str, ...]
    late: tuple[str, ...] = ()
    filter: str | None = None
    order_by: tuple[str, ...] = ()
    is_computed: bool = False
    steps: FilterSteps | None = None

    @property
    def all_skipped(self) -> tuple[SkippedSegment, ...]:
        """Segments that the filter leaves out."""
        return () if self.steps is None else self.steps.skipped


Plan = VectorPlan | TextPlan | HybridPlan | ScanPlan
