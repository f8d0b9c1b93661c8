"""Bodies and query parameters of requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from lance_core.index.vector.quantizer import (
    ApproxMode,  # noqa: TC001 - pydantic reads annotations at run time
)
from service.api.models.body import Body, NonNegative, Positive
from service.api.models.text_queries import (
    FusionBody,  # noqa: TC001 - same
    WireTextQuery,  # noqa: TC001 - same
)

_UINT64_BOUND = 2**64
RowId = Annotated[int, Field(ge=0, lt=_UINT64_BOUND)]


def _cap(value: object) -> object:
    """Return 2^64 - 1 for larger numbers; JSON integers beyond 64 bits arrive as floats."""
    if isinstance(value, float) and value >= _UINT64_BOUND:
        return _UINT64_BOUND - 1
    return value


AnyCount = Annotated[NonNegative, BeforeValidator(_cap)]
"""A number of rows, however large."""


class Parameters(BaseModel):
    """Query parameters: text that is read as the type wanted."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    delimiter: str = Field("$", description="What stands between the parts of an identifier.")


class IdBody(Body):
    """A body that repeats the identifier of the path."""

    id: list[str] | None = Field(None, description="Must equal the path's identifier.")


class VersionedBody(IdBody):
    """A body that may name a version."""

    version: int | None = Field(None, description="Dataset version; absent = the latest.")
    branch: str | None = Field(
        None, description="Branch that the version is of; absent, empty or `main` = the main one."
    )
    tag: str | None = Field(
        None, description="Instead of version and branch: a tag, which names both."
    )
    max_staleness_ms: NonNegative | None = Field(
        None, description="Oldest look for a newer version that is good enough; 0 = look first."
    )


class PinParameters(Parameters):
    """Query parameters that may name a version; the body wins."""

    version: int | None = Field(None, description="Dataset version; absent = the latest.")
    branch: str | None = Field(None, description="Branch; absent, empty or `main` = the main one.")
    tag: str | None = Field(None, description="Instead of version and branch: a tag.")


class DescribeBody(VersionedBody):
    """Body of ``describe``."""

    load_detailed_metadata: bool | None = Field(
        None, description="False: version and schema may be left out."
    )


class DescribeParameters(PinParameters):
    """Query parameters of ``describe``; the body wins."""

    load_detailed_metadata: bool | None = Field(
        None, description="False: version and schema may be left out."
    )


class PageParameters(Parameters):
    """Query parameters of listings."""

    limit: Positive | None = Field(None, description="Names per page; absent = all.")
    page_token: str | None = Field(None, description="The last name of the page before.")


class IndexPageParameters(PageParameters, PinParameters):
    """Query parameters of ``index/list``; the body wins."""


class VersionPageParameters(PinParameters):
    """Query parameters of ``version/list``."""

    limit: Positive | None = Field(None, description="Versions per page; absent = all.")
    page_token: NonNegative | None = Field(None, description="The last version before the page.")
    descending: bool = Field(False, description="Newest first.")


class ReadyParameters(Parameters):
    """Query parameters of ``/ready``."""

    table: str | None = Field(None, description="Identifier of a table that must be readable.")


class AnswerParameters(PinParameters):
    """Query parameters of ``query``."""

    format: str | None = Field(None, description="`arrow`, `arrow_stream` or `json`.")
    compression: str | None = Field(None, description="Of Arrow buffers: `lz4` or `zstd`.")


class Ordering(Body):
    """One column to order rows by."""

    column_name: str = Field(description="A column, or a part of a nested one.")
    ascending: bool | None = Field(None, description="Absent: true.")
    nulls_first: bool | None = Field(None, description="Absent: false.")


class CountBody(VersionedBody):
    """Body of ``count_rows``."""

    predicate: str | None = Field(
        None, description="Count only rows for which this is true; absent = all."
    )
    filter: str | None = Field(None, description="The same under its name in queries.")
    params: dict[str, object] | None = Field(
        None, description="Values of the `$name` in the predicate."
    )
    timeout_ms: Positive | None = Field(None, description="Time allowed; absent = no limit.")


class QueryOptions(VersionedBody):
    """Everything in a query body but the vector, which goes to numpy without a detour, and text."""

    vector_column: str | None = Field(
        None, description="Absent: the only vector column of that dimension."
    )
    k: AnyCount | None = Field(
        None,
        description="Rows wanted, per vector; 2^62 and more: no limit. Absent, or 0 with a vector"
        " or a text: 10.",
    )
    offset: AnyCount | None = Field(None, description="Rows to skip after ranking.")
    columns: list[str] | None = Field(None, description="Columns of the answer; absent = all.")
    with_row_id: bool | None = Field(None, description="Add the column `_rowid`.")
    distance_type: str | None = Field(
        None,
        description="`l2`, `cosine` or `dot`, for uint8 vectors `hamming`; absent: the index's,"
        " else `l2` or `hamming`.",
    )
    nprobes: NonNegative | None = Field(None, description="Partitions to probe.")
    minimum_nprobes: NonNegative | None = Field(None, description="Wins over `nprobes`.")
    maximum_nprobes: NonNegative | None = Field(None, description="0 = no upper limit.")
    ef: Positive | None = Field(None, description="Breadth of graph searches.")
    approx_mode: ApproxMode | None = Field(
        None,
        description="What counts where an index can be searched in several ways; absent: `normal`.",
    )
    refine_factor: Positive | None = Field(
        None, description="Rank k times this many candidates by exact distance."
    )
    lower_bound: float | None = Field(None, description="Smallest distance kept.")
    upper_bound: float | None = Field(None, description="Distances from here on are dropped.")
    filter: str | None = Field(
        None,
        description="Only rows for which this is true, such as"
        " `price < 10 AND kind IN ('a', 'b')`. At most 1 MiB of text and 5000 comparisons; an"
        " `IN` list of 200 and more plain values is one.",
    )
    params: dict[str, object] | None = Field(
        None,
        description="Values of the `$name` in filter and expressions: `price < $most` with"
        ' `{"most": 10}`.',
    )
    order_by: list[Ordering] | None = Field(
        None,
        description="Without a vector and a text: what to order rows by, the first column counting"
        " most.",
    )
    prefilter: bool | None = Field(
        None,
        description="False: filter the first k rows afterwards, so that fewer may remain; the"
        " filter may then name `_distance`, with a text alone `_score`. Absent: true.",
    )
    row_id: RowId | None = Field(
        None,
        description="Instead of a vector: search by the vector of the row with this `_rowid`, which"
        " is left out of the answer itself.",
    )
    row_ids: list[RowId] | None = Field(
        None,
        description="Instead of `row_id`: several rows, each a query of a batch, so that the answer"
        " begins with `query_index`.",
    )
    bypass_vector_index: bool | None = Field(
        None,
        description="Search vectors exactly; without a vector: use no index for text and filter.",
    )
    fast_search: bool | None = Field(
        None,
        description="Search indexed rows only: those that the index of vectors or texts covers, and"
        " the scalar indices that the filter asks.",
    )
    fusion: FusionBody | None = Field(
        None, description="With a vector and a text: how relevance is made of both."
    )
    timeout_ms: Positive | None = Field(None, description="Time allowed for the query.")


class NamespaceVector(BaseModel):
    """The Namespace form of vectors; neither of the two: no search by vector."""

    single_vector: list[float] | None = None
    multi_vector: list[list[float]] | None = None


class ColumnNames(BaseModel):
    """The Namespace form of a list of columns."""

    column_names: list[str]


class ColumnAliases(BaseModel):
    """The Namespace form of columns under other names: the path of each."""

    column_aliases: dict[str, str]


WireColumns = list[str] | ColumnNames | ColumnAliases | dict[str, str]
"""All forms of the columns of a query."""


class ComputedColumns(Body):
    """The columns of an answer as an object."""

    columns: dict[str, str] = Field(description="An expression for each column.")


class QueryBody(QueryOptions):
    """Body of ``query``."""

    vector: list[float] | list[list[float]] | NamespaceVector | None = Field(
        None,
        description="One vector, or several: of a batch of queries, or of one query where rows hold"
        " lists of vectors. Empty or absent: no search by vector.",
    )
    full_text_query: WireTextQuery | None = Field(
        None,
        description="Words, or a text query as an object in the forms of LanceDB and of Lance"
        " Namespace. The answer has `_score`; with a vector too, it is fused of both and has"
        " `_distance`, `_score` and `_relevance_score`. Neither: a plain query.",
    )
    columns: WireColumns | None = Field(  # type: ignore[assignment]  # wider: the wire
        None,
        description="Columns of the answer: names, or as an object the expression that makes each,"
        ' such as `{"double": "price * 2"}`. Absent = all.',
    )


class IndexListBody(VersionedBody):
    """Body of ``index/list``."""

    limit: Positive | None = Field(None, description="Indices per page; absent = all.")
    page_token: str | None = Field(None, description="The last name of the page before.")


class PrewarmBody(VersionedBody):
    """Body of ``prewarm``."""

    partitions: list[NonNegative] | None = Field(
        None, description="Partitions of each segment; absent = all."
    )
    timeout_ms: Positive | None = Field(None, description="Time allowed; absent = no limit.")


class PageCacheBody(VersionedBody):
    """Body of ``page_cache/prewarm``."""

    columns: list[str] | None = Field(None, description="Columns to read; empty or absent = all.")
    timeout_ms: Positive | None = Field(None, description="Time allowed; absent = no limit.")


class TagBody(IdBody):
    """Body of ``tags/version``."""

    tag: str = Field(description="Name of the tag.")


class RecallBody(VersionedBody):
    """Body of ``recall``."""

    column: str | None = Field(None, description="Absent: the only vector column.")
    k: Annotated[int, Field(ge=1)] = Field(10, description="Neighbours looked for.")
    sample: Annotated[int, Field(ge=1, le=1000)] = Field(
        50, description="Rows whose neighbours are looked for, always the same of a version."
    )
    nprobes: Positive | None = Field(None, description="As of queries; absent = automatic.")
    ef: Positive | None = Field(None, description="As of queries.")
    refine_factor: Positive | None = Field(None, description="As of queries.")
    timeout_ms: Positive | None = Field(
        None, description="Time allowed; what was measured until then is answered."
    )


class RowName(Body):
    """A row, by its ``_rowid``."""

    row_id: RowId


class WhyNotOptions(IdBody):
    """Everything in the body of ``why_not`` but the query."""

    row: RowName = Field(description="The row that is asked about.")


class AnalyzeBody(QueryBody):
    """Body of ``analyze_plan``: a query."""

    query: QueryBody | None = Field(
        None, description="The query, where it does not stand in the body itself."
    )


class WhyNotBody(AnalyzeBody):
    """Body of ``why_not``: a query by a vector or for words, and the row that is asked about."""

    row: RowName = Field(description="The row that is asked about.")


class PlanParameters(PinParameters):
    """Query parameters of ``explain_plan`` and ``analyze_plan``."""

    format: str | None = Field(None, description="`text` or `json`: the plan as an object.")


class ExplainOptions(VersionedBody):
    """Everything in the body of ``explain_plan`` but the query."""

    verbose: bool | None = Field(None, description="Has no effect: plans are always whole.")


class ExplainBody(AnalyzeBody, ExplainOptions):
    """Body of ``explain_plan``: a query, in either place."""
