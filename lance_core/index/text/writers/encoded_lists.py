"""Posting lists as rows of a partition's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.kernels.text_positions import GROUP
from lance_core.kernels.text_write_impacts import best_weights, length_codes, write_impacts
from lance_core.kernels.text_write_positions import write_position_parts, write_positions
from lance_core.kernels.text_write_postings import write_postings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.index.text.writers.runs import PostingLists

GROUP_BLOCKS = 32
"""Behind the impacts of all blocks there are those of every 32 of them together."""

_K1, _B = np.float32(1.2), np.float32(0.75)
_ONE, _HALF = np.float32(1), np.float32(0.5)
_WORD_BYTES = 4
_POSTING_BYTES, _BLOCK_BYTES, _IMPACT_BYTES, _POSITION_BYTES = 10, 16, 20, 5
_BLOCKS = pa.list_(pa.large_binary())

_POSTING_FIELDS = (
    pa.field("_posting", _BLOCKS, nullable=False),
    pa.field("_max_score", pa.float32(), nullable=False),
    pa.field("_length", pa.uint32(), nullable=False),
    pa.field("_impacts", _BLOCKS, nullable=False),
)
_POSITION_FIELDS = (
    pa.field("_compressed_position", pa.large_binary(), nullable=False),
    pa.field("_position_block_offset", pa.list_(pa.uint32()), nullable=False),
)
_FIRST_POSITION_FIELDS = (pa.field("_position", pa.list_(_BLOCKS), nullable=False),)


@dataclass(frozen=True, slots=True, eq=False)
class DocumentWeights:
    """What of the documents of a partition goes into scores and impacts.

    Parameters
    ----------
    norms
        By document: what a frequency is added to before it is divided by the sum.
    codes
        Of the lengths, by document.
    """

    norms: NDArray[np.float32]
    codes: NDArray[np.uint8]

    @classmethod
    def of(cls, lengths: NDArray[np.uint32]) -> DocumentWeights:
        """Take the lengths of all documents, of which there is at least one."""
        average = np.float32(lengths.sum(dtype=np.int64)) / np.float32(len(lengths))
        codes = np.empty(len(lengths), np.uint8)
        length_codes(lengths, codes)
        scaled = lengths.astype(np.float32)
        scaled *= _B
        scaled /= average
        scaled += _ONE - _B
        scaled *= _K1
        return cls(scaled, codes)


@dataclass(frozen=True, slots=True)
class PostingForm:
    """How posting lists are stored.

    Parameters
    ----------
    block_size
        Postings of a block, 128 or 256.
    is_first
        Whether as in version 1 of the format, whose numbers outside of full blocks are words.
    has_positions
        Whether positions are stored.
    """

    block_size: int
    is_first: bool = False
    has_positions: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Columns of the file."""
        positions = _FIRST_POSITION_FIELDS if self.is_first else _POSITION_FIELDS
        return pa.schema([*_POSTING_FIELDS, *(positions if self.has_positions else ())])


def encoded_lists(
    lists: PostingLists, weights: DocumentWeights, form: PostingForm
) -> list[pa.Array]:
    """Return the columns of posting lists, which have positions where the form says so.

    Notes
    -----
    Scalar index page, sections 8.5 and 8.6.
    """
    lengths = np.diff(lists.bounds)
    counts = -(-lengths // form.block_size)
    firsts = np.append(0, np.cumsum(counts))
    bounds = _block_bounds(lists.bounds, firsts, form.block_size)
    best = np.empty(len(bounds) - 1, np.float32)
    best_weights(lists.docs, lists.frequencies, bounds, weights.norms, best)
    scores = best * np.repeat(_shares(lengths, len(weights.norms)), counts)
    columns = [
        _postings(lists, bounds, firsts, scores, form),
        pa.array(np.maximum.reduceat(scores, firsts[:-1])),
        pa.array(lengths.astype(np.uint32)),
        _impacts(lists, bounds, firsts, weights),
    ]
    if lists.positions is not None and form.is_first:
        columns.append(_position_parts(lists, lists.positions))
    elif lists.positions is not None:
        columns += _positions(lists, lists.positions, bounds, firsts)
    return columns


def _shares(lengths: NDArray[np.int64], num_docs: int) -> NDArray[np.float32]:
    """Return what the weight of a frequency is multiplied by, for tokens in so many documents."""
    others = np.float32(num_docs) - lengths.astype(np.float32) + _HALF
    arguments = others / (lengths.astype(np.float32) + _HALF) + _ONE
    inverse = np.log(arguments.astype(np.float64)).astype(np.float32)
    shares: NDArray[np.float32] = inverse * (_K1 + _ONE)
    return shares


def _block_bounds(
    bounds: NDArray[np.int64], firsts: NDArray[np.int64], block_size: int
) -> NDArray[np.int64]:
    """Return where blocks begin among the postings, and the end of the last."""
    counts = np.diff(firsts)
    within = np.arange(firsts[-1]) - np.repeat(firsts[:-1], counts)
    starts = np.repeat(bounds[:-1], counts) + within * block_size
    return np.append(starts, bounds[-1])


def _postings(
    lists: PostingLists,
    bounds: NDArray[np.int64],
    firsts: NDArray[np.int64],
    scores: NDArray[np.float32],
    form: PostingForm,
) -> pa.Array:
    room = _POSTING_BYTES * len(lists.docs) + _BLOCK_BYTES * len(scores)
    out, ends = np.empty(room, np.uint8), np.empty(len(bounds), np.int64)
    write_postings(
        lists.docs,
        lists.frequencies,
        bounds,
        form.block_size,
        not form.is_first,
        scores.view(np.uint8),
        out,
        ends,
    )
    return _lists(firsts, _binaries(out, ends))


def _impacts(
    lists: PostingLists,
    bounds: NDArray[np.int64],
    firsts: NDArray[np.int64],
    weights: DocumentWeights,
) -> pa.Array:
    counts = np.diff(firsts)
    entry_firsts = np.append(0, np.cumsum(counts + -(-counts // GROUP_BLOCKS)))
    room = _IMPACT_BYTES * (2 * len(lists.docs) + int(entry_firsts[-1]))
    out, ends = np.empty(room, np.uint8), np.empty(entry_firsts[-1] + 1, np.int64)
    write_impacts(
        lists.docs, lists.frequencies, bounds, firsts, GROUP_BLOCKS, weights.codes, out, ends
    )
    return _lists(entry_firsts, _binaries(out, ends))


def _positions(
    lists: PostingLists,
    positions: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    firsts: NDArray[np.int64],
) -> list[pa.Array]:
    out = np.empty(_POSITION_BYTES * len(positions), np.uint8)
    ends = np.empty(len(bounds), np.int64)
    write_positions(positions, lists.frequencies, bounds, out, ends)
    starts = ends[firsts]
    offsets = ends[:-1] - np.repeat(starts[:-1], np.diff(firsts))
    return [_binaries(out, starts), _lists(firsts, pa.array(offsets.astype(np.uint32)))]


def _position_parts(lists: PostingLists, positions: NDArray[np.uint32]) -> pa.Array:
    num = len(lists.docs)
    out = np.empty(_WORD_BYTES * num + _POSITION_BYTES * len(positions), np.uint8)
    ends = np.empty(2 * num + len(positions) // GROUP + 1, np.int64)
    firsts = np.empty(num + 1, np.int64)
    count = write_position_parts(positions, lists.frequencies, out, ends, firsts)
    return _lists(lists.bounds, _lists(firsts, _binaries(out, ends[: count + 1])))


def _binaries(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> pa.Array:
    whole = pa.py_buffer(data[: ends[-1]].copy())  # what is not filled is given back
    return pa.Array.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), whole]
    )


def _lists(firsts: NDArray[np.int64], items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(firsts.astype(np.int32)), items)
