"""Mini-block pages: small chunks that are decoded whole (file format, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.bitpacking import InlineBitpacking
from lance_core.encodings.blocks import Blocks, address_of_bytes, blocks_of
from lance_core.encodings.chunk_table import parse_chunk_table
from lance_core.encodings.levels import PageData, take_rows
from lance_core.encodings.mini_block_rows import RepetitionIndex
from lance_core.encodings.page import DirectChunks
from lance_core.encodings.rows import expand_ranges, runs_of
from lance_core.encodings.values import FixedWidth, Indexed
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.mini_block import split_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.chunk_table import ChunkTable
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.levels import Layers, Levels
    from lance_core.encodings.page import DirectPage, Page, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.values import Values

_METADATA, _CHUNKS, _DICTIONARY = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class MiniBlockState:
    """What is loaded once per page: chunk table, dictionary, repetition index."""

    table: ChunkTable
    dictionary: Values | None
    index: RepetitionIndex | None


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

    @property
    def num_buffers(self) -> int:
        """Buffers that a page must have."""
        return 2 + (self.dictionary is not None) + self.has_repetition_index

    def check(self, page: Page, place: Place) -> None:
        """Raise ``CorruptFileError`` if the page's buffers contradict the layout."""
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

    def state_bytes(self, page: Page) -> int:
        """Estimate from the sizes of the metadata buffers."""
        return 4 * sum(size for index, (_, size) in enumerate(page.buffers) if index != _CHUNKS)

    def load_table(self, page: Page, words: memoryview, place: Place) -> ChunkTable:
        """Parse the chunk metadata of a page."""
        word_bytes = 4 if self.has_large_chunk else 2
        return parse_chunk_table(words, word_bytes, self.num_items, page.buffers[_CHUNKS][1], place)

    def load(self, page: Page, place: Place) -> ReadSteps[MiniBlockState]:
        """Return the page's state; read what is missing."""
        if page.loaded.state is not None:
            return cast("MiniBlockState", page.loaded.state)
        buffers = yield [page.whole(b) for b in range(len(page.buffers)) if b != _CHUNKS]
        table = self.load_table(page, buffers[_METADATA], place)
        dictionary = None
        if self.dictionary is not None:
            count = np.array([self.num_dictionary_items], np.int64)
            dictionary = self.dictionary.decode_blocks(
                blocks_of([buffers[_DICTIONARY - 1]]), count, place
            )
        index = None
        if self.has_repetition_index:
            index = RepetitionIndex.parse(buffers[-1], table.num_chunks, page.num_rows, place)
        state = MiniBlockState(table, dictionary, index)
        page.loaded.state = state
        return state

    def read(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[list[PageData]]:
        """Read the chunks that hold the rows, decode them, and cut out the rows."""
        state = yield from self.load(page, place)
        if state.index is not None and self.repetition is not None:
            return (yield from self._read_lists(page, state, state.index, pieces, place))
        starts = np.array([start for start, _ in pieces], np.int64)
        stops = np.array([stop for _, stop in pieces], np.int64)
        first_values = state.table.first_values
        firsts = np.searchsorted(first_values, starts, side="right") - 1
        lasts = np.searchsorted(first_values, stops, side="left")
        chunks = np.unique(expand_ranges(firsts, lasts))
        data = yield from self._read_chunks(page, state, chunks, place)
        rows = expand_ranges(starts, stops)
        counts = np.diff(first_values)[chunks]
        before = np.cumsum(counts) - counts - first_values[chunks]
        home = np.searchsorted(first_values[chunks], rows, side="right") - 1
        return [take_rows(data, rows + before[home])]

    def _read_lists(
        self,
        page: Page,
        state: MiniBlockState,
        index: RepetitionIndex,
        pieces: Pieces,
        place: Place,
    ) -> ReadSteps[list[PageData]]:
        spans = [index.chunks_of(start, stop) for start, stop in pieces]
        firsts = np.array([first for first, _ in spans], np.int64)
        chunks = np.unique(expand_ranges(firsts, np.array([last for _, last in spans], np.int64)))
        data, levels = yield from self._read_levels(page, state, chunks, place)
        first_levels = np.concatenate(([0], np.cumsum(levels)))
        return [
            index.cut(data, start, span, first_levels[np.searchsorted(chunks, span)], stop, place)
            for (start, stop), span in zip(pieces, spans, strict=True)
        ]

    def _read_chunks(
        self, page: Page, state: MiniBlockState, chunks: NDArray[np.int64], place: Place
    ) -> ReadSteps[PageData]:
        data, _ = yield from self._read_levels(page, state, chunks, place)
        return data

    def _read_levels(
        self, page: Page, state: MiniBlockState, chunks: NDArray[np.int64], place: Place
    ) -> ReadSteps[tuple[PageData, NDArray[np.int64]]]:
        """Read and decode whole chunks; also return the number of levels of each."""
        runs = runs_of(chunks)
        first_bytes = state.table.first_bytes
        views = yield [
            page.span(_CHUNKS, int(first_bytes[first]), int(first_bytes[stop]))
            for first, stop in runs
        ]
        addresses = np.concatenate(
            [
                address_of_bytes(view) + first_bytes[first:stop] - first_bytes[first]
                for view, (first, stop) in zip(views, runs, strict=True)
            ]
            or [np.empty(0, np.int64)]
        )
        sizes = np.diff(first_bytes)[chunks]
        counts = np.diff(state.table.first_values)[chunks]
        return self._decode(Blocks(addresses, sizes, views), counts, state.dictionary, place)

    def _decode(
        self, chunks: Blocks, counts: NDArray[np.int64], dictionary: Values | None, place: Place
    ) -> tuple[PageData, NDArray[np.int64]]:
        level_encodings = [e for e in (self.repetition, self.definition) if e is not None]
        num_levels, parts = self._split(chunks, len(level_encodings), place)
        levels = [
            _levels(encoding, part, num_levels, place)
            for encoding, part in zip(level_encodings, parts, strict=False)
        ]
        values = self.values.decode_chunks(parts[len(levels) :], counts, place)
        if dictionary is not None:
            values = _indexed(values, dictionary, place)
        repetition = levels[0] if self.repetition is not None else None
        definition = levels[-1] if self.definition is not None else None
        rows = values.num_values
        data = PageData(values, repetition, definition, self.layers, rows).checked(place)
        return data, num_levels if len(levels) > 0 else counts

    def _split(
        self, chunks: Blocks, num_level_buffers: int, place: Place
    ) -> tuple[NDArray[np.int64], Sequence[Blocks]]:
        num_chunks = len(chunks.sizes)
        num_parts = num_level_buffers + self.values.num_buffers
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


def _levels(
    encoding: Compression, part: Blocks, num_levels: NDArray[np.int64], place: Place
) -> Levels:
    return levels_of(encoding.decode_blocks(part, num_levels, place), place)


def levels_of(values: Values, place: Place) -> Levels:
    """Return decoded levels as numbers; they have 16 bits."""
    if not isinstance(values, FixedWidth) or values.bits != np.dtype(np.uint16).itemsize * 8:
        raise place.corrupt("levels are not numbers of 16 bits")
    return values.data.view(np.uint16)


def _indexed(values: Values, dictionary: Values, place: Place) -> Indexed:
    if not isinstance(values, FixedWidth):
        raise place.corrupt("dictionary indices are not numbers")
    return Indexed(values.integers().astype(np.int64), dictionary)
