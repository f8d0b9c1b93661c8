"""Bodies of answers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """A JSON answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tables(Answer):
    """A page of table names."""

    tables: list[str]
    page_token: str | None


class Namespaces(Answer):
    """A page of namespace names."""

    namespaces: list[str]
    page_token: str | None


class NamespaceDescription(Answer):
    """Properties of a namespace; this service keeps none."""

    properties: dict[str, str] | None


class JsonType(Answer):
    """A column type by its name in the caller's dialect."""

    type: str
    length: int | None = None
    fields: list[JsonField] | None = None


class JsonField(Answer):
    """A column or a part of one."""

    name: str
    nullable: bool
    type: JsonType
    metadata: dict[str, str] | None = None


class JsonSchema(Answer):
    """The columns of a table."""

    fields: list[JsonField]
    metadata: dict[str, str]


class TableStats(Answer):
    """What the manifest counts."""

    num_deleted_rows: int
    num_fragments: int


class TableDescription(Answer):
    """Answer of ``describe``; version and schema are null when the caller wants none."""

    table: str
    namespace: list[str]
    version: int | None
    location: str
    table_uri: str
    table_schema: JsonSchema | None = Field(alias="schema")
    stats: TableStats
    metadata: dict[str, str]
    properties: dict[str, str] | None
    storage_options: dict[str, str] | None
    managed_versioning: bool
    is_only_declared: bool


class VersionEntry(Answer):
    """One version of a table."""

    version: int
    manifest_path: str
    manifest_size: int
    e_tag: str | None
    timestamp: str = Field(description="RFC 3339 with zone.")
    timestamp_millis: int
    metadata: dict[str, str]


class Versions(Answer):
    """A page of versions."""

    versions: list[VersionEntry]
    page_token: str | None


class Stats(Answer):
    """What was done to answer a query."""

    version: int
    plan: Literal["ann", "exact", "text", "hybrid", "scan"]
    exact: bool = Field(description="Whether all distances come from the stored vectors.")
    partitions_probed: int
    partitions_total: int
    rows_scanned_flat: int
    rows_refined: int
    bytes_read: int
    store_requests: int
    cache_hits: int
    cache_misses: int
    stop_reason: Literal["complete", "probe_limit", "no_more_rows"]
    elapsed_ms: float
    rows_left_out: int = Field(
        description="Rows that no index holds and that were not scored either, as far as known."
    )


class Rows(Answer):
    """The JSON form of a query's answer."""

    version: int
    columns: list[str]
    rows: list[dict[str, object]] = Field(
        description=(
            "Dates, times and timestamps are text; outside the years 1 to 9999, or outside a day,"
            " the stored integer in the column's unit."
        )
    )
    num_rows: int
    stats: Stats


class SkippedByPlan(Answer):
    """A segment that a plan leaves out."""

    index: str
    segment: str
    reason: str


class MeasuredStep(Answer):
    """What a step did, over all query vectors."""

    rows: int = Field(description="Rows that it handed on.")
    partitions: int = Field(description="Partitions of an index that it searched.")
    bytes_read: int
    store_requests: int
    cache_hits: int
    cache_misses: int
    elapsed_ms: float
    postings: int = Field(
        description="How many documents an inverted index has of the tokens that it looked for."
    )


class PlanStep(Answer):
    """One step of a plan; steps that several use stand under each of them."""

    node: Literal[
        "Take",
        "Fuse",
        "Postfilter",
        "MergeByDistance",
        "Rescore",
        "RankByHits",
        "IndexSearch",
        "FlatSearch",
        "ListedSearch",
        "RankByScore",
        "BestOf",
        "Boolean",
        "Boost",
        "Match",
        "Phrase",
        "CombinedFields",
        "TextIndexSearch",
        "FlatTextSearch",
        "Prefilter",
        "IndexLookup",
        "Recheck",
        "FilterScan",
        "Compute",
        "Limit",
        "Order",
        "Filter",
        "Scan",
    ]
    settings: dict[str, object] = Field(
        description=(
            "What the step goes by. Take: `columns`. Fuse: `fusion` (`rrf` or `weighted`),"
            " `fusion_k` or `fusion_vector` and `fusion_text`, `offset`, `k`; its inputs are the"
            " vector query and the text query. Postfilter: `filter`. MergeByDistance:"
            " `metric`, `offset`, `k`, `lower_bound`?, `upper_bound`?, `bounded`? (what the bounds"
            " cut), `fragments_left_out`? (without index, by a fast search). Rescore:"
            " `candidates`, `k`, `reason` (`refine` or `mixed`). RankByHits: `hits`, `k`."
            " IndexSearch: `index`, `segment`, `type`, `metric`, `probes` (`minimum`, `maximum`),"
            " `partitions`, `fragments`, `k`, `ef`?, `approx_mode`?. FlatSearch: `fragments`, `k`,"
            " `reason`."
            " ListedSearch: `fragments`, `rows`, `k`, `reason`."
            " RankByScore: `offset`, `k`, `documents`?, `fragments_left_out`?. BestOf: of"
            " each row its best score in the inputs. Boolean: `must`,"
            " `should`, `must_not` (how many of its inputs are of each kind, in this order). Boost:"
            " `negative_boost`; its inputs are positive and negative. Match: `column`, `text`,"
            " `operator`, `boost`?, `fuzziness`?, `prefix_length`?, `max_expansions`?. Phrase:"
            " `column`, `text`, `slop`. CombinedFields: `column`, `text`, `operator`."
            " TextIndexSearch: `index`, `segment`, `partitions`, `fragments`. FlatTextSearch:"
            " `fragments`, `reason`."
            " Prefilter: `filter`, `rows`,"
            " `fragments_left_out`? (that a scalar index does not cover, by a fast search)."
            " IndexLookup: `test`, `index`, `type`, `segments`, `fragments`, `rows` (that the index"
            " leaves in question), `exact` (whether all of them pass)."
            " Recheck: `columns`, `fragments`, `rows` (that indices leave open)."
            " FilterScan: `columns`, `fragments` (that no index covers), `rows`."
            " Compute: `columns`. Limit: `offset`, `limit`. Order: `by`, `keep`. Filter: `filter`."
            " Scan: `fragments`, `columns`."
        )
    )
    measured: MeasuredStep | None = Field(
        None, description="After a run: what the step did, null if it had nothing to do."
    )
    inputs: list[PlanStep] = Field(description="What feeds the step.")


class PlanAnswer(Answer):
    """The JSON form of a plan."""

    schema_version: Literal[1] = Field(
        description="Of this form: members and settings may come, none goes or changes its meaning"
        " without another number."
    )
    version: int
    plan: PlanStep
    skipped: list[SkippedByPlan]
    stats: Stats | None = Field(None, description="After a run: the facts of all of it.")


class WhyNotAnswer(Answer):
    """What keeps a row out of an answer."""

    version: int
    row_id: int
    reason: Literal[
        "present",
        "before_offset",
        "itself",
        "unknown",
        "deleted",
        "filtered",
        "not_indexed",
        "outside_range",
        "partition_not_probed",
        "lost_in_refine",
        "not_reached",
        "given_up",
        "no_match",
        "beaten",
    ]
    detail: dict[str, object] = Field(description="The facts behind the reason.")
    text: str = Field(description="The same as a sentence.")


class IndexEntry(Answer):
    """One index of a table."""

    index_name: str
    index_uuid: str = Field(description="Of its newest segment.")
    columns: list[str]
    status: Literal["SUCCEEDED"]
    index_type: str = Field(description="`IVF_PQ`, `BTREE` and so on; `Unknown` for odd ones.")
    type_url: str
    num_indexed_rows: int = Field(description="Live rows of fragments that a segment covers.")
    num_unindexed_rows: int
    size_bytes: int
    num_segments: int
    created_at: str | None
    index_version: int
    index_details: str


class Indices(Answer):
    """A page of indices, in byte order of their names."""

    indexes: list[IndexEntry]
    page_token: str | None


class IndexStatistics(Answer):
    """One index in figures."""

    index_type: str = Field(description="As of `IndexEntry`.")
    distance_type: Literal["l2", "cosine", "dot", "hamming"] | None
    num_indexed_rows: int
    num_unindexed_rows: int
    num_indices: int = Field(description="Its segments.")


class SkippedSegment(Answer):
    """A segment of an index that queries do not use."""

    segment: str
    reason: str


class PrewarmAnswer(Answer):
    """How much of an index is in memory now."""

    version: int
    index: str
    is_complete: bool = Field(description="Whether everything that was asked for is in memory.")
    stopped: str | None = Field(description="Why not everything was loaded.")
    partitions: int = Field(
        description="Partitions of all segments that are in memory; of an index of values parts,"
        " such as pages."
    )
    partitions_total: int = Field(description="Partitions that were asked for.")
    rows: int = Field(description="Rows in them; 0 of an index of values.")
    bytes: int = Field(description="Memory that they take.")
    bytes_read: int = Field(description="Read for it; nothing for what was there already.")
    store_requests: int
    elapsed_ms: float
    skipped: list[SkippedSegment]


class ProblemBody(Answer):
    """Every error answer."""

    error: str
    code: int
    detail: str | None
    instance: str
    title: str
    status: int


class Welcome(Answer):
    """Where to read on."""

    service: Literal["lance-serve"]
    version: str
    openapi: str = Field(description="Path of the OpenAPI document.")
    health: str = Field(description="Path that tells whether the process runs.")
    ready: str = Field(description="Path that tells whether queries can be answered.")
    documentation: str = Field(description="What explains the service to people.")


class Health(Answer):
    """The process runs."""

    status: Literal["ok"]


class Readiness(Answer):
    """The service answers queries."""

    status: Literal["ready"]
    table: str | None = Field(None, description="The table that was asked about.")
    version: int | None = Field(None, description="Its latest version, which is open now.")
