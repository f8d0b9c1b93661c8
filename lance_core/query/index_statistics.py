"""What an index is at one version: its kind, the rows that it covers, and in what shape."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_core.index.text.parameters import TextParameters

UNKNOWN_TYPE = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class PartitionSizes:
    """How the rows in the files of a vector segment, dead ones included, lie in its partitions."""

    num_partitions: int
    num_empty: int
    num_rows: int
    largest: int

    @property
    def mean(self) -> float:
        """Rows of a partition, empty ones included."""
        return self.num_rows / max(self.num_partitions, 1)


@dataclass(frozen=True, slots=True)
class TextSizes:
    """What a segment of an inverted index holds, and how it makes tokens.

    Parameters
    ----------
    num_partitions
        Its partitions.
    num_docs
        Documents of all of them, deleted rows included; rows without any token are none.
    num_tokens
        Distinct tokens of each partition, added up.
    has_positions
        Whether phrases can be looked for.
    by_element
        Whether each element of a list is a document, and not the list.
    parameters
        How tokens are made.
    """

    num_partitions: int
    num_docs: int
    num_tokens: int
    has_positions: bool
    by_element: bool
    parameters: TextParameters


@dataclass(frozen=True, slots=True)
class SegmentStatistics:
    """One segment of an index.

    Parameters
    ----------
    uuid
        Names the segment.
    index_type, metric
        As of `IndexStatistics`, of this segment.
    dataset_version
        Version that it was built from.
    num_bytes
        Bytes of its files, as far as they are recorded.
    covered
        Live fragments that it is for, ascending; without any it answers nothing.
    partitions
        Of vectors; None of other kinds, and where its files cannot be read.
    num_compactions_behind
        Deferred compactions that its files have not followed.
    unused
        Why queries do not use it; None = they do.
    text
        Of an inverted index; None of other kinds, and where its files cannot be read.
    """

    uuid: str
    index_type: str
    metric: str | None
    dataset_version: int
    num_bytes: int
    covered: tuple[int, ...]
    partitions: PartitionSizes | None
    num_compactions_behind: int
    unused: str | None
    text: TextSizes | None = None


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """One index with all its segments.

    Parameters
    ----------
    name
        The index.
    columns
        Paths of its columns.
    has_columns
        Whether all of them are in the schema; others are told by their ids.
    index_type
        Such as ``IVF_PQ`` or ``BTREE``; ``UNKNOWN`` where nothing tells.
    metric
        Of vectors.
    type_url
        Of the details in the manifest; empty where an old writer left them out.
    index_version
        Version of the format of its newest segment.
    created_at_ms
        When the first segment was made, milliseconds since the epoch; None where not recorded.
    num_indexed_rows, num_unindexed_rows
        Live rows of fragments that some segment covers, and of the others.
    segments
        The oldest first.
    """

    name: str
    columns: tuple[str, ...]
    has_columns: bool
    index_type: str
    metric: str | None
    type_url: str
    index_version: int
    created_at_ms: int | None
    num_indexed_rows: int
    num_unindexed_rows: int
    segments: tuple[SegmentStatistics, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of all files."""
        return sum(each.num_bytes for each in self.segments)

    @property
    def num_partitions(self) -> int | None:
        """Partitions of all segments; None of indices of values."""
        found = [size for each in self.segments for size in (each.partitions, each.text)]
        known = [each.num_partitions for each in found if each is not None]
        return sum(known) if len(known) > 0 else None

    @property
    def text(self) -> TextSizes | None:
        """That of the newest segment of an inverted index whose files can be read."""
        known = [each.text for each in self.segments if each.text is not None]
        return known[-1] if len(known) > 0 else None

    @property
    def covered(self) -> tuple[int, ...]:
        """Live fragments that some segment is for, ascending."""
        return tuple(sorted({each for segment in self.segments for each in segment.covered}))

    def to_dict(self) -> dict[str, object]:
        """Return all of it as plain values, ready for JSON."""
        sums = {"num_bytes": self.num_bytes, "num_partitions": self.num_partitions}
        return {**asdict(self), **sums, "covered": self.covered}
