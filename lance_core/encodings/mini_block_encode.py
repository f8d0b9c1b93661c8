"""Leaves -> mini-block pages: chunks, their words, repetition index (file format, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.choose import MAX_CHUNK_VALUES, chunk_bounds
from lance_core.encodings.encode_levels import (
    LevelStream,
    layer_numbers,
    level_bounds,
    repetition_index,
)
from lance_core.encodings.version import FileVersion
from lance_core.kernels.memory import address_of
from lance_core.kernels.mini_block_encode import assemble_chunks
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.choose import Choice
    from lance_core.encodings.compression import ChunkBuffer
    from lance_core.encodings.shred import Leaf

    Buffers = tuple[NDArray[np.uint8], ...]

_MIN_CHUNK_VALUES = 2
_PAD = 8
_LOG_BITS = 4
_MAX_LEVEL_BYTES = MAX_CHUNK_LEVELS = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class _Grammar:
    """How a version writes chunks."""

    has_large_chunk: bool
    word: str
    max_chunk_bytes: int


_GRAMMARS = {
    FileVersion.V2_1: _Grammar(False, "<u2", 32 << 10),
    FileVersion.V2_2: _Grammar(True, "<u4", 1 << 31),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Chunks:
    """The parts of all chunks: level streams, then value buffers."""

    bounds: NDArray[np.int64]
    level_bounds: NDArray[np.int64]
    repetition: LevelStream | None
    definition: LevelStream | None
    values: tuple[ChunkBuffer, ...]

    @classmethod
    def of(
        cls,
        leaf: Leaf,
        choice: Choice,
        bounds: NDArray[np.int64],
        of_levels: NDArray[np.int64],
        version: FileVersion,
    ) -> _Chunks:
        """Encode values and levels, cut at the bounds."""
        return cls(
            bounds,
            of_levels,
            LevelStream.of(leaf.repetition, of_levels, version),
            LevelStream.of(leaf.definition, of_levels, version),
            choice.encoding.encode_chunks(choice.values, bounds),
        )

    @property
    def level_buffers(self) -> list[ChunkBuffer]:
        """The level streams that are there."""
        return [s.buffer for s in (self.repetition, self.definition) if s is not None]

    def assemble(self, grammar: _Grammar) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
        """Return chunk words and chunks, or None if a chunk is too large."""
        levels = self.level_buffers
        parts = [*levels, *self.values]
        sizes = np.stack([part.sizes for part in parts])
        value_word = 4 if grammar.has_large_chunk else 2
        header = 2 + 2 * len(levels) + value_word * len(self.values)
        chunk_bytes = _padded(header) + _padded(sizes).sum(axis=0)
        too_large = int(chunk_bytes.max()) > grammar.max_chunk_bytes
        if too_large or int(sizes[: len(levels)].max(initial=0)) > _MAX_LEVEL_BYTES:
            return None
        out = np.empty(int(chunk_bytes.sum()), np.uint8)
        assemble_chunks(
            self.level_bounds[1:] - self.level_bounds[:-1],
            np.array([address_of(part.data) for part in parts], np.int64),
            sizes,
            len(levels),
            grammar.has_large_chunk,
            out.view(np.uint16),
            out,
        )
        return self._words(chunk_bytes, grammar), out

    def _words(self, chunk_bytes: NDArray[np.int64], grammar: _Grammar) -> NDArray[np.uint8]:
        logs: NDArray[np.int64] = np.log2(self.bounds[1:] - self.bounds[:-1]).astype(np.int64)
        logs[-1] = 0  # the last chunk holds what the others leave
        words: NDArray[np.int64] = ((chunk_bytes // _PAD - 1) << _LOG_BITS) | logs
        return words.astype(grammar.word).view(np.uint8)


def encode_mini_block(
    leaf: Leaf, choice: Choice, version: FileVersion
) -> tuple[Buffers, pb.PageLayout] | None:
    """Encode a page as mini-block chunks.

    Parameters
    ----------
    leaf
        At least one visible value.
    choice
        How its values are stored.
    version
        2.1 has narrower chunk words.

    Returns
    -------
    tuple[Buffers, pb.PageLayout] or None
        None if the values or levels of two values do not fit into a chunk.
    """
    grammar = _GRAMMARS[version]
    max_values = MAX_CHUNK_VALUES
    while max_values >= _MIN_CHUNK_VALUES:
        bounds = chunk_bounds(choice, max_values)
        of_levels = level_bounds(leaf, bounds)
        if int((of_levels[1:] - of_levels[:-1]).max()) <= MAX_CHUNK_LEVELS:
            chunks = _Chunks.of(leaf, choice, bounds, of_levels, version)
            assembled = chunks.assemble(grammar)
            if assembled is not None:
                return _page(leaf, choice, chunks, assembled, grammar)
        max_values //= 2
    return None


def _page(
    leaf: Leaf,
    choice: Choice,
    chunks: _Chunks,
    assembled: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    grammar: _Grammar,
) -> tuple[Buffers, pb.PageLayout]:
    buffers = [*assembled]
    layout = pb.MiniBlockLayout(
        value_compression=choice.encoding.message(),
        layers=layer_numbers(leaf.layers),
        num_buffers=choice.encoding.num_buffers,
        num_items=choice.values.num_values,
        has_large_chunk=grammar.has_large_chunk,
    )
    if chunks.repetition is not None:
        layout.rep_compression.CopyFrom(chunks.repetition.encoding.message())
    if chunks.definition is not None:
        layout.def_compression.CopyFrom(chunks.definition.encoding.message())
    if choice.dictionary is not None and choice.dictionary_encoding is not None:
        buffers.append(choice.dictionary_encoding.encode_block(choice.dictionary))
        layout.dictionary.CopyFrom(choice.dictionary_encoding.message())
        layout.num_dictionary_items = choice.dictionary.num_values
    if leaf.repetition is not None:
        index = repetition_index(leaf.repetition, leaf.layers.num_lists, chunks.level_bounds)
        buffers.append(index.reshape(-1).view(np.uint8))
        layout.repetition_index_depth = 1
    return tuple(buffers), pb.PageLayout(mini_block_layout=layout)


def _padded(size: NDArray[np.int64] | int) -> NDArray[np.int64]:
    return np.asarray((size + _PAD - 1) // _PAD * _PAD, np.int64)
