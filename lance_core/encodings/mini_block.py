"""Mini-block pages: small chunks that are decoded whole (file format, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.bitpacking import InlineBitpacking
from lance_core.encodings.blocks import Blocks, address_of_bytes, blocks_of
from lance_core.encodings.chunk_table import ChunkWords, parse_chunk_table
from lance_core.encodings.fsst import Fsst
from lance_core.encodings.levels import PageData
from lance_core.encodings.mini_block_rows import RepetitionIndex
from lance_core.encodings.page import DirectChunks
from lance_core.encodings.page_dictionaries import indices_of
from lance_core.encodings.rows import expand_ranges, runs_of
from lance_core.encodings.values import FixedWidth, Indexed
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.mini_block import split_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.chunk_table import ChunkTable
    from lance_core.encodings.compression import Compression, Selection
    from lance_core.encodings.levels import Layers, Levels
    from lance_core.encodings.page import DirectPage, Page, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.values import Values

_METADATA, _CHUNKS, _DICTIONARY = 0, 1, 2
_MAX_ITEMS = 1 << 31
_FEW = 4
"""One value in this many costs less to decode by itself than with all of its chunk."""


@dataclass(frozen=True, slots=True, eq=False)
class MiniBlockState:
    """What is loaded once per page: chunk table, dictionary, repetition index."""

    table: ChunkTable
    dictionary: Values | None
    index: RepetitionIndex | None

    @property
    def nbytes(self) -> int:
        """Memory of the three."""
        parts = (self.table, self.dictionary, self.index)
        return sum(part.nbytes for part in parts if part is not None)

    def index_of_lists(self, place: Place) -> RepetitionIndex:
        """Return the index that a page with lists has."""
        if self.index is None:
            raise place.corrupt("a page with lists has no repetition index")
        return self.index


@dataclass(frozen=True, slots=True, eq=False)
class MiniBlock:
    """The layout message, decoded; ``num_items`` counts values, not rows."""

    repetition: Compression | None
    definition: Compression | None
    values: Compression
    dictionary: Compression | None
    num_dictionary_items: int
    layers: Layers
    num_items: int
    has_large_chunk: bool
    has_repetition_index: bool

    def with_num_items(self, num_items: int) -> MiniBlock:
        """Return the same layout for another number of values."""
        return MiniBlock(
            self.repetition,
            self.definition,
            self.values,
            self.dictionary,
            self.num_dictionary_items,
            self.layers,
            num_items,
            self.has_large_chunk,
            self.has_repetition_index,
        )

    @property
    def has_lists(self) -> bool:
        """Whether rows hold lists, so that rows, levels and values differ in number."""
        return self.repetition is not None

    @property
    def family(self) -> object:
        """What pages must share to be read as one run."""
        encodings = (self.definition, self.values.family, self.dictionary is not None)
        return encodings, self.repetition, self.layers, self.has_large_chunk

    @property
    def shared_values(self) -> Compression:
        """The part of the values' encoding that is the same in all pages of a family."""
        return self.values.inner if isinstance(self.values, Fsst) else self.values

    @property
    def num_buffers(self) -> int:
        """Buffers that a page must have."""
        return 2 + (self.dictionary is not None) + self.has_repetition_index

    def check(self, page: Page, place: Place) -> None:
        """Raise ``CorruptFileError`` if the page's buffers contradict the layout."""
        if self.num_dictionary_items > _MAX_ITEMS:
            raise place.corrupt(f"a dictionary of {self.num_dictionary_items} items")
        if len(page.buffers) != self.num_buffers:
            raise place.corrupt(f"a page has {len(page.buffers)} buffers, not {self.num_buffers}")
        if (self.layers.num_lists > 0) != (self.repetition is not None):
            raise place.corrupt("repetition levels do not go with the layers")
        if self.repetition is None and self.num_items != page.num_rows:
            raise place.corrupt(f"a page of {page.num_rows} rows has {self.num_items} values")
        if self.repetition is not None and not self.has_repetition_index:
            raise place.corrupt("a page with lists has no repetition index")

    def direct(self, page: Page) -> DirectPage | None:
        """Rows are addressable if they are raw or inline-packed and there are no levels."""
        has_levels = self.repetition is not None or self.definition is not None
        if has_levels or self.dictionary is not None:
            return None
        if isinstance(self.values, InlineBitpacking):
            return DirectChunks(self.values.bits // 8, is_packed=True)
        bits = self.values.raw_bits
        return None if bits is None else DirectChunks(bits // 8, is_packed=False)

    def chunk_words(self, page: Page, words: memoryview) -> ChunkWords:
        """Return the chunk metadata of a page with what it must add up to."""
        word_bytes = 4 if self.has_large_chunk else 2
        return ChunkWords(words, word_bytes, self.num_items, page.buffers[_CHUNKS][1])

    def load(self, page: Page, place: Place) -> ReadSteps[MiniBlockState]:
        """Return the page's state, which the page keeps; read it if it is missing."""
        state = cast("MiniBlockState | None", page.loaded.state)
        if state is None:
            state = yield from self.read_state(page, place)
            page.loaded.state = state
        return state

    def read_state(self, page: Page, place: Place) -> ReadSteps[MiniBlockState]:
        """Read the page's state."""
        buffers = yield [page.whole(b) for b in range(len(page.buffers)) if b != _CHUNKS]
        table = parse_chunk_table(self.chunk_words(page, buffers[_METADATA]), place)
        dictionary = None
        if self.dictionary is not None:
            count = np.array([self.num_dictionary_items], np.int64)
            dictionary = self.dictionary.decode_blocks(
                blocks_of([buffers[_DICTIONARY - 1]]), count, place
            )
        index = None
        if self.repetition is not None:
            index = RepetitionIndex.parse(buffers[-1], table.num_chunks, page.num_rows, place)
        return MiniBlockState(table, dictionary, index)

    def read(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[list[PageData]]:
        """Read rows of a page with lists that is in no run."""
        state = yield from self.load(page, place)
        index = state.index_of_lists(place)
        starts, stops = np.array(pieces, np.int64).reshape(-1, 2).T
        chunks = np.unique(expand_ranges(*index.chunks_of(starts, stops)))
        blocks = yield from self._fetch(page, state.table, chunks)
        counts = np.diff(state.table.first_values)[chunks]
        data, levels = self.decode_lists(blocks, counts, self.values, place)
        if state.dictionary is not None:
            indices = indices_of(data.values, place)
            data = replace(data, values=Indexed(indices, state.dictionary))
        first_levels = np.concatenate(([0], np.cumsum(levels)))
        return [index.cut(data, chunks, first_levels, pieces, place)]

    def decode(
        self,
        chunks: Blocks,
        counts: NDArray[np.int64],
        selection: Selection | None,
        values: Compression,
        place: Place,
    ) -> PageData:
        """Decode chunks of pages without lists.

        Parameters
        ----------
        chunks, counts
            Where the chunks lie and how many values each holds, shape ``(c,)``.
        selection
            The values wanted, in ascending order; None for all.
        values
            Decodes the values: the layout's own encoding or a part of it.
        place
            The column, for errors.

        Returns
        -------
        PageData
            Of a page with a dictionary, values are the indices.
        """
        num_level_buffers = int(self.definition is not None)
        num_levels, parts = self._split(chunks, num_level_buffers, values, place)
        definition = None
        if self.definition is not None:
            if bool((num_levels != counts).any()):
                raise place.corrupt("a chunk has other than one level per value")
            definition = _levels(self.definition, parts[0], num_levels, place)
            if selection is not None:
                definition = definition[selection.among(counts)]
        decoded = _decode_some(values, parts[num_level_buffers:], counts, selection, place)
        data = PageData(decoded, None, definition, self.layers, decoded.num_values)
        return data.checked(place)

    def _fetch(self, page: Page, table: ChunkTable, chunks: NDArray[np.int64]) -> ReadSteps[Blocks]:
        """Read whole chunks, neighbours together."""
        runs = runs_of(chunks)
        first_bytes = table.first_bytes
        views = yield [
            page.span(_CHUNKS, int(first_bytes[first]), int(first_bytes[stop]))
            for first, stop in runs
        ]
        addresses = [
            address_of_bytes(view) + first_bytes[first:stop] - first_bytes[first]
            for view, (first, stop) in zip(views, runs, strict=True)
        ]
        sizes = np.diff(first_bytes)[chunks]
        return Blocks(np.concatenate([*addresses, np.empty(0, np.int64)]), sizes, views)

    def decode_lists(
        self, chunks: Blocks, counts: NDArray[np.int64], values: Compression, place: Place
    ) -> tuple[PageData, NDArray[np.int64]]:
        """Decode whole chunks, as ``decode``; also return the number of levels of each."""
        level_encodings = [e for e in (self.repetition, self.definition) if e is not None]
        num_levels, parts = self._split(chunks, len(level_encodings), values, place)
        levels = [
            _levels(encoding, part, num_levels, place)
            for encoding, part in zip(level_encodings, parts, strict=False)
        ]
        decoded = values.decode_chunks(parts[len(levels) :], counts, place)
        definition = levels[-1] if self.definition is not None else None
        data = PageData(decoded, levels[0], definition, self.layers, decoded.num_values)
        return data.checked(place), num_levels

    def _split(
        self, chunks: Blocks, num_level_buffers: int, values: Compression, place: Place
    ) -> tuple[NDArray[np.int64], Sequence[Blocks]]:
        num_chunks = len(chunks.sizes)
        num_parts = num_level_buffers + values.num_buffers
        num_levels = np.empty(num_chunks, np.int64)
        addresses = np.empty((num_parts, num_chunks), np.int64)
        sizes = np.empty((num_parts, num_chunks), np.int64)
        bad = split_chunks(
            chunks.addresses,
            chunks.sizes,
            num_level_buffers,
            self.has_large_chunk,
            num_levels,
            addresses,
            sizes,
        )
        if bad != DONE:
            raise place.corrupt("the parts of a chunk do not fit into it")
        return num_levels, [
            Blocks(*part, chunks.owner) for part in zip(addresses, sizes, strict=True)
        ]


def _decode_some(
    encoding: Compression,
    parts: Sequence[Blocks],
    counts: NDArray[np.int64],
    selection: Selection | None,
    place: Place,
) -> Values:
    """Decode all values, or only those selected where that is less work."""
    if selection is None:
        return encoding.decode_chunks(parts, counts, place)
    if len(selection.chunks) * _FEW < int(counts.sum()):
        return encoding.take_chunks(parts, counts, selection, place)
    return encoding.decode_chunks(parts, counts, place).take(selection.among(counts))


def _levels(
    encoding: Compression, part: Blocks, num_levels: NDArray[np.int64], place: Place
) -> Levels:
    return levels_of(encoding.decode_blocks(part, num_levels, place), place)


def levels_of(values: Values, place: Place) -> Levels:
    """Return decoded levels as numbers; they have 16 bits."""
    if not isinstance(values, FixedWidth) or values.bits != np.dtype(np.uint16).itemsize * 8:
        raise place.corrupt("levels are not numbers of 16 bits")
    return values.data.view(np.uint16)
