"""Where a token stands in its documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.stored_columns import stored_column
from lance_core.index.text.block_lists import BlockLists, list_items
from lance_core.index.text.layout import LISTS_OF_BYTES, PositionCodec
from lance_core.kernels.text_positions import read_position_lists, read_position_stream
from lance_core.kernels.text_postings import ALL_FIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.file.reader import LanceFileReader
    from lance_core.index.text.layout import PostingLayout

NEEDS_POSITIONS = "phrases need an index with positions: build it with with_position=True"
"""Why an index without positions answers no phrase."""

_MOST_PER_BYTE = 128
"""A byte may say that 128 differences are all 0."""


@dataclass(frozen=True, slots=True, eq=False)
class PositionList:
    """Positions of one token; shared, do not change it.

    Parameters
    ----------
    starts
        Those of document ``i`` of the posting list go from ``starts[i]`` to ``starts[i + 1]``;
        shape ``(n + 1,)``.
    positions
        Ascending within each document.
    """

    starts: NDArray[np.int64]
    positions: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.starts.nbytes + self.positions.nbytes)


def go_on() -> None:
    """Let work that nobody waits for run to its end."""


def starts_of(frequencies: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return where the positions of each document begin, and the end of the last."""
    starts = np.zeros(len(frequencies) + 1, np.int64)
    np.cumsum(frequencies, out=starts[1:])
    return starts


def read_positions(
    reader: LanceFileReader,
    layout: PostingLayout,
    tokens: Sequence[int],
    frequencies: Sequence[NDArray[np.uint32]],
    check: Callable[[], object] = go_on,
) -> list[PositionList]:
    """Read the positions of some tokens in one go.

    Parameters
    ----------
    reader
        The file of a partition's postings, one row for each token.
    layout
        How it is stored, with positions.
    tokens
        The tokens.
    frequencies
        Of each, how many positions its documents have.
    check
        Called before those of each token are decoded; raises when the work has to stop.

    Raises
    ------
    CorruptFileError
        The bytes contradict the format.
    """
    if layout.positions is PositionCodec.LISTS:
        kinds = [pa.list_(each) for each in LISTS_OF_BYTES]
        (stored,) = reader.take([stored_column(reader, "_position", kinds)], tokens)
        return list(_from_lists(stored, tokens, frequencies, reader.path, check))
    columns = [
        stored_column(reader, "_compressed_position", [pa.large_binary(), pa.binary()]),
        stored_column(reader, "_position_block_offset", [pa.list_(pa.uint32())]),
    ]
    streams, blocks = reader.take(columns, tokens)
    firsts, offsets = list_items(blocks, reader.path)
    if streams.null_count + offsets.null_count > 0:
        raise CorruptFileError(reader.path, "positions of a token are null")
    block_starts = offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    found = []
    for index, token in enumerate(tokens):
        check()
        bounds = block_starts[firsts[index] : firsts[index + 1]]
        starts, what = starts_of(frequencies[index]), f"{reader.path}, token {token}"
        found.append(_from_stream(streams[index].as_buffer(), bounds, layout, starts, what))
    return found


def _from_stream(
    stream: pa.Buffer,
    block_starts: NDArray[np.int64],
    layout: PostingLayout,
    starts: NDArray[np.int64],
    path: str,
) -> PositionList:
    bounds = np.append(block_starts, stream.size)
    num_blocks = -(-(len(starts) - 1) // layout.block_size)
    are_bounds = len(block_starts) == num_blocks and bounds[0] == 0 and (np.diff(bounds) >= 0).all()
    if not are_bounds or starts[-1] > _MOST_PER_BYTE * stream.size:
        raise CorruptFileError(path, "blocks of positions do not fit the postings")
    positions = np.empty(starts[-1], np.uint32)
    is_packed = layout.positions is PositionCodec.PACKED
    bad = read_position_stream(
        stream.address, bounds, layout.block_size, is_packed, starts, positions
    )
    if bad != ALL_FIT:
        raise CorruptFileError(path, f"block {bad} of the positions is damaged")
    return PositionList(starts, positions)


def _from_lists(
    stored: pa.Array,
    tokens: Sequence[int],
    frequencies: Sequence[NDArray[np.uint32]],
    path: str,
    check: Callable[[], object],
) -> Iterator[PositionList]:
    firsts, documents = list_items(stored, path)
    parts = BlockLists.of(documents, path)
    part_firsts = parts.firsts
    for index, token in enumerate(tokens):
        check()
        yield _from_parts(
            parts,
            part_firsts[firsts[index] : firsts[index + 1] + 1],
            starts_of(frequencies[index]),
            f"{path}, token {token}",
        )


def _from_parts(
    parts: BlockLists, firsts: NDArray[np.int64], starts: NDArray[np.int64], path: str
) -> PositionList:
    stored_bytes = parts.offsets[firsts[-1]] - parts.offsets[firsts[0]]
    if len(firsts) != len(starts) or starts[-1] > _MOST_PER_BYTE * stored_bytes:
        raise CorruptFileError(path, "positions do not fit the postings")
    positions = np.empty(starts[-1], np.uint32)
    bad = read_position_lists(parts.base, parts.offsets, firsts, starts, positions)
    if bad != ALL_FIT:
        raise CorruptFileError(path, f"positions of document {bad} of the postings are damaged")
    return PositionList(starts, positions)
