"""Answers that describe a table: names of versions, what is counted, what indices cover."""

from __future__ import annotations

from pydantic import Field

from service.api.models.answers import Answer


class TagEntry(Answer):
    """One tag."""

    branch: str | None = Field(description="Branch of the version; null = the main one.")
    version: int
    manifestSize: int = Field(description="Bytes of the manifest of the version.")  # noqa: N815


class NamespaceTags(Answer):
    """A page of tags by name, in byte order."""

    tags: dict[str, TagEntry]
    page_token: str | None


class TagVersion(Answer):
    """The version that a tag names."""

    version: int
    branch: str | None = Field(description="Its branch; null = the main one.")


class BranchEntry(Answer):
    """One branch; null as parent is the main one."""

    parentBranch: str | None  # noqa: N815 - as both families of clients read it
    parentVersion: int  # noqa: N815 - same
    createAt: int = Field(description="Seconds since 1970.")  # noqa: N815 - same
    manifestSize: int  # noqa: N815 - same
    metadata: dict[str, str]


class Branches(Answer):
    """All branches but the main one, by name."""

    branches: dict[str, BranchEntry]


class FragmentLengths(Answer):
    """Rows of fragments, deleted ones included; all are 0 where there is no fragment."""

    min: int
    max: int
    mean: int = Field(description="Rounded down.")
    p25: int
    p50: int
    p75: int
    p99: int


class FragmentStatistics(Answer):
    """How rows lie in fragments."""

    num_fragments: int
    num_small_fragments: int = Field(description="Those with fewer than 100,000 rows.")
    lengths: FragmentLengths


class TableStatistics(Answer):
    """Answer of ``stats``."""

    total_bytes: int = Field(description="Of the files of data and of indices.")
    num_rows: int = Field(description="Live ones.")
    num_indices: int
    fragment_stats: FragmentStatistics


class CoveredFragment(Answer):
    """One fragment."""

    id: int
    rows: int = Field(description="Rows in its files.")
    deleted: int = Field(description="Those of them that are deleted.")


class CoveringSegment(Answer):
    """One segment of an index."""

    uuid: str
    type: str
    usable: bool = Field(description="Whether queries use it.")
    reason: str | None = Field(description="Why not.")


class CoverageGap(Answer):
    """A fragment that no usable segment covers: it is scanned."""

    fragment: int
    reason: str


class IndexCoverage(Answer):
    """What one index covers."""

    name: str
    columns: list[str]
    segments: list[CoveringSegment]
    covered: list[int] = Field(description="Fragments that usable segments are for.")
    gaps: list[CoverageGap]


class Coverage(Answer):
    """Fragments and indices of a version, and which index covers which fragment."""

    version: int
    fragments: list[CoveredFragment]
    indices: list[IndexCoverage]


class RecallAnswer(Answer):
    """How good approximate answers are, and what they save."""

    version: int
    column: str
    recall: float | None = Field(
        description="Mean share of the rows found exactly that were found by the index too; null"
        " where no row has a vector."
    )
    sample: int = Field(description="Rows asked for; fewer than wanted if the time ended.")
    k: int
    p50_ms: float | None = Field(description="Median time of searches by the index.")
    exact_p50_ms: float | None = Field(description="Median time of exact ones.")


class PageCacheAnswer(Answer):
    """What was read of columns."""

    version: int
    columns: list[str]
    rows: int
    bytes_read: int
    store_requests: int
    elapsed_ms: float
