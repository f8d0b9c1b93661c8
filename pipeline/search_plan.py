"""How a batch of queries is spread over tasks: pure functions of sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    PlanName = Literal["auto", "A", "B"]

FEW_QUERIES = 10_000
HELD_BYTES = 128 << 20
"""Half of what a worker keeps in memory."""
_ROWS_PER_BLOCK = 1 << 20
_PIECES = 64
"""Pieces that an index is cut into at least, if there is work for them."""
_WORTH = 1 << 27
"""Rows scored that are worth a task: about a second with codes."""


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """Partitions ``[start, stop)`` of the ``place``-th segment of a plan."""

    place: int
    start: int
    stop: int


def choose_plan(asked: PlanName, *, num_queries: int, index_bytes: int, has_parts: bool) -> str:
    """Choose whether tasks share the queries (``A``) or the index (``B``).

    Parameters
    ----------
    asked
        What the caller wants; ``auto`` = choose.
    num_queries
        How many there are.
    index_bytes
        Bytes of the segments that are searched, or of the vectors of rows without index.
    has_parts
        Whether the search can be split at all: with few rows that pass a filter there is nothing
        to split, each of them is scored.

    Notes
    -----
    Spark page, section 10.8.
    """
    if not has_parts:
        return "A"
    if asked != "auto":
        return asked
    return "A" if num_queries < FEW_QUERIES or index_bytes <= HELD_BYTES else "B"


def block_rows(query_block: int, k: int) -> int:
    """Return how many queries share a task: fewer where each has many rows in its answer."""
    return max(1, min(query_block, _ROWS_PER_BLOCK // k))


def partition_ranges(
    lengths: Sequence[NDArray[np.int64]],
    probed: Sequence[NDArray[np.int64]],
    row_bytes: Sequence[float],
    are_whole: Sequence[bool],
    *,
    num_pieces: int = _PIECES,
) -> list[PartitionRange]:
    """Cut segments into ranges of partitions with about equal work that fit into memory.

    Parameters
    ----------
    lengths
        Rows of each partition, shape ``(P,)``, per segment.
    probed
        Queries that probe each partition, shape ``(P,)``, per segment.
    row_bytes
        Bytes of a row in memory, per segment.
    are_whole
        Whether a segment must not be cut.
    num_pieces
        Ranges wanted, as far as each is worth a task.

    Returns
    -------
    list[PartitionRange]
        Disjoint, in order; together they have every partition that is probed.
    """
    work = [own * queries for own, queries in zip(lengths, probed, strict=True)]
    total = sum(int(each.sum()) for each in work)
    share = max(total // num_pieces, _WORTH)
    ranges: list[PartitionRange] = []
    for place, is_whole in enumerate(are_whole):
        if is_whole:
            starts = np.zeros(1, np.int64)
        else:
            needed = np.where(probed[place] > 0, lengths[place], 0) * row_bytes[place]
            starts = _starts(work[place], needed, share)
        stops = [*starts[1:].tolist(), len(lengths[place])]
        ranges += [
            PartitionRange(place, start, stop)
            for start, stop in zip(starts.tolist(), stops, strict=True)
            if probed[place][start:stop].any()
        ]
    return ranges


def _starts(work: NDArray[np.int64], needed: NDArray[np.float64], share: int) -> NDArray[np.int64]:
    """Return where ranges begin: where a share of the work, or of the memory, is full."""
    number = np.zeros(len(work), np.int64)
    for amounts, most in ((work.astype(np.float64), share), (needed, HELD_BYTES)):
        before = np.cumsum(amounts) - amounts
        number += np.floor(before / most).astype(np.int64)
    return np.flatnonzero(np.diff(number, prepend=-1) > 0)
