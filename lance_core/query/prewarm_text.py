"""Loading an inverted index into memory before the first query asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_core.index.cut import cut_groups
from lance_core.index.registry import IndexKind, classify
from lance_core.index.text.statistics import CorpusStatistics
from lance_core.index.text.weighted import weighted_postings
from lance_core.query.planner import segments_of_index
from lance_core.query.prewarm import require_index
from lance_core.query.prewarm_parts import load_all, require_whole
from lance_core.query.text_column import TextColumn
from lance_core.query.text_segments import describe_text_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.ids import FieldId
    from lance_core.index.text.partition import TextPartition
    from lance_core.query.deadline import Deadline
    from lance_core.query.plan import SkippedSegment
    from lance_core.query.prewarm import Prewarmed
    from lance_core.query.prewarm_parts import Loadable
    from lance_core.query.session import Session
    from lance_core.query.text_documents import TextDocuments
    from lance_core.table.snapshot import Snapshot

_PART_BYTES = 1 << 20
_POSTING_BYTES = 8
_LIST_BYTES = 512
"""Of a list beside its postings, about."""


def is_text_index(snapshot: Snapshot, name: str) -> bool:
    """Tell whether an index is an inverted one; errors as `require_index`."""
    return IndexKind.INVERTED in {classify(each) for each in require_index(snapshot, name)}


def warm_text_index(
    session: Session,
    snapshot: Snapshot,
    field_id: FieldId,
    name: str,
    partitions: Sequence[int] | None,
    progress: Callable[[Prewarmed], object],
    deadline: Deadline,
) -> Prewarmed:
    """Load dictionaries, documents and posting lists, and then the positions where there are any.

    Parameters and errors are those of `warm_scalar_index`.
    """
    require_whole(name, partitions)

    def opened() -> tuple[Sequence[Loadable], Sequence[SkippedSegment]]:
        field = snapshot.schema.by_id(field_id)
        live = BitMap(snapshot.fragments_by_id)
        described = describe_text_segments(session, snapshot, field, live)
        usable, skipped = segments_of_index([each.description for each in described], name)
        column = TextColumn(session, snapshot, snapshot.schema.path_of(field_id), field)
        segments = [(column.segment(each), column.documents(each)) for each in usable]
        own = [(part, rows) for segment, rows in segments for part in segment.partitions]
        mean_length = CorpusStatistics.of(part for part, _ in own).mean_length
        lists = [_Lists.of(part, mean_length) for part, _ in own]
        positions = [_Positions(each) for each in lists if each.partition.has_positions]
        ends = [_Ends(part, rows, deadline) for part, rows in own]
        return [*ends, *lists, *positions], skipped

    return load_all(name, opened, session.cache, progress, deadline)


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """The dictionary of a partition, and which rows its documents are; one part."""

    partition: TextPartition
    rows: TextDocuments
    deadline: Deadline

    @property
    def nbytes(self) -> int:
        return self.partition.nbytes

    @property
    def num_parts(self) -> int:
        return 1

    def load_parts(self, start: int, stop: int) -> int:
        del start, stop
        rows = self.rows.rows(self.partition, None, self.deadline, resident_only=False)
        live = 0 if rows.live is None else rows.live.nbytes
        lengths = self.partition.scoring_lengths()
        return self.partition.dictionary().nbytes + rows.row_ids.nbytes + lengths.nbytes + live


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    """The posting lists of a partition, as searches take them.

    Parameters
    ----------
    partition
        Where.
    mean_length
        Of all documents that are searched together.
    tokens
        By their numbers, which lists lie in the file by.
    cuts
        Each part has the tokens from one of these to the next.
    """

    partition: TextPartition
    mean_length: np.float32
    tokens: pa.LargeStringArray
    cuts: Sequence[int]

    @classmethod
    def of(cls, partition: TextPartition, mean_length: np.float32) -> _Lists:
        found = list(partition.all_tokens())
        numbers = np.concatenate([np.zeros(0, np.int64), *(own for _, own in found)])
        order = np.argsort(numbers, kind="stable")
        tokens = pa.concat_arrays([pa.array([], pa.large_string()), *(own for own, _ in found)])
        sizes = partition.postings_file.counts()[numbers[order]] * _POSTING_BYTES + _LIST_BYTES
        cuts = cut_groups(sizes, _PART_BYTES)
        return cls(partition, mean_length, tokens.take(pa.array(order)), cuts)

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def num_parts(self) -> int:
        return len(self.cuts) - 1

    def load_parts(self, start: int, stop: int) -> int:
        tokens = self.some(start, stop)
        lists = weighted_postings(self.partition, tokens, self.mean_length)
        return sum(each.nbytes for each in lists)

    def some(self, start: int, stop: int) -> list[str]:
        """Return the tokens of some parts."""
        first, end = self.cuts[start], self.cuts[stop]
        tokens: list[str] = self.tokens[first:end].to_pylist()
        return tokens


@dataclass(frozen=True, slots=True, eq=False)
class _Positions:
    """The positions of the tokens of a partition, by the same parts."""

    lists: _Lists

    @property
    def nbytes(self) -> int:
        return 0

    @property
    def num_parts(self) -> int:
        return self.lists.num_parts

    def load_parts(self, start: int, stop: int) -> int:
        partition = self.lists.partition
        numbers = partition.token_ids(self.lists.some(start, stop))
        return sum(each.nbytes for each in partition.positions(numbers.tolist()))
