"""Full-zip pages: level and value of each row side by side (file format, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.blocks import Blocks, blocks_of
from lance_core.encodings.levels import PageData
from lance_core.encodings.page import RawRows
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.full_zip import unzip

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.compression import Compression
    from lance_core.encodings.levels import Layers
    from lance_core.encodings.page import DirectPage, Page, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps

_ENTRIES, _INDEX = 0, 1
_WHOLE_INDEX_BYTES = 16 << 10
"""Repetition indices up to this size are read whole and kept; of larger ones only entries."""


@dataclass(frozen=True, slots=True, eq=False)
class FullZip:
    """The layout message, decoded; exactly one of ``value_bytes`` and ``length_bytes`` is 0."""

    repetition_bits: int
    definition_bits: int
    value_bytes: int
    length_bytes: int
    values: Compression
    layers: Layers

    @property
    def control_bytes(self) -> int:
        """Width of the control word before each entry."""
        bits = self.repetition_bits + self.definition_bits
        return next(width for width in (0, 1, 2, 4) if bits <= width * 8)

    @property
    def has_index(self) -> bool:
        """Whether rows differ in size, so that an index says where they begin."""
        return self.length_bytes > 0 or self.layers.num_lists > 0

    def check(self, page: Page, place: Place) -> None:
        """Raise ``CorruptFileError`` if the page's buffers contradict the layout."""
        wanted = 2 if self.has_index else 1
        if len(page.buffers) != wanted:
            raise place.corrupt(f"a page has {len(page.buffers)} buffers, not {wanted}")
        size = page.buffers[_ENTRIES][1]
        entry_bytes = self.control_bytes + self.value_bytes
        if entry_bytes + self.length_bytes == 0:
            raise place.corrupt("rows of no bytes")
        if not self.has_index and size != page.num_rows * entry_bytes:
            raise place.corrupt(f"{page.num_rows} rows of {entry_bytes} bytes fill {size} bytes")
        if self.has_index and self._index_width(page) == 0:
            raise place.corrupt("a repetition index that does not fit its rows")

    def direct(self, page: Page) -> DirectPage | None:
        """Rows without control words lie one after another."""
        bits = self.values.raw_bits
        if self.has_index or self.control_bytes > 0 or bits != self.value_bytes * 8:
            return None
        return RawRows(page.buffers[_ENTRIES][0], self.value_bytes)

    def read(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[list[PageData]]:
        """Read the bytes of exactly the rows asked for."""
        if self.has_index:
            spans = yield from self._find(page, pieces, place)
        else:
            width = self.control_bytes + self.value_bytes
            spans = [(start * width, stop * width) for start, stop in pieces]
        views = yield [page.span(_ENTRIES, start, stop) for start, stop in spans]
        if self.layers.num_lists == 0:
            rows = sum(stop - start for start, stop in pieces)
            return [self._decode(blocks_of(views), rows, place)]
        return [
            self._decode(blocks_of([view]), stop - start, place)
            for view, (start, stop) in zip(views, pieces, strict=True)
        ]

    def _index_width(self, page: Page) -> int:
        """Return the width of an entry of the repetition index, 0 if it fits no rows."""
        size = page.buffers[_INDEX][1]
        width, rest = divmod(size, page.num_rows + 1)
        return width if rest == 0 and width in {1, 2, 4, 8} else 0

    def _find(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[Pieces]:
        """Look up where the bytes of each piece begin and end."""
        if page.buffers[_INDEX][1] <= _WHOLE_INDEX_BYTES:
            index = yield from self._whole_index(page)
            spans = [(int(index[start]), int(index[stop])) for start, stop in pieces]
        else:
            spans = yield from self._index_entries(page, pieces)
        size = page.buffers[_ENTRIES][1]
        if any(not 0 <= begin <= end <= size for begin, end in spans):
            raise place.corrupt("the repetition index leaves the page")
        return spans

    def _whole_index(self, page: Page) -> ReadSteps[NDArray[np.int64]]:
        index = cast("NDArray[np.int64] | None", page.loaded.state)
        if index is None:
            (view,) = yield [page.whole(_INDEX)]
            index = page.loaded.state = _integers(view, self._index_width(page))
        return index

    def _index_entries(self, page: Page, pieces: Pieces) -> ReadSteps[Pieces]:
        width = self._index_width(page)
        wanted: Pieces = []
        for start, stop in pieces:
            if stop == start + 1:
                wanted.append((start, stop + 1))
            else:
                wanted += [(start, start + 1), (stop, stop + 1)]
        views = yield [page.span(_INDEX, first * width, stop * width) for first, stop in wanted]
        bounds = np.concatenate([_integers(view, width) for view in views]).tolist()
        return list(zip(bounds[::2], bounds[1::2], strict=True))

    def _decode(self, runs: Blocks, num_rows: int, place: Place) -> PageData:
        controls, values = self._unzip(runs, place)
        definition_mask = (1 << self.definition_bits) - 1
        repetition = definition = None
        if self.repetition_bits > 0:
            repetition = (controls >> np.uint32(self.definition_bits)).astype(np.uint16)
        elif self.layers.num_lists > 0:
            repetition = np.full(len(controls), self.layers.num_lists, np.uint16)
        if self.definition_bits > 0:
            definition = (controls & np.uint32(definition_mask)).astype(np.uint16)
        decoded = self.values.decode_zipped(values, place)
        return PageData(decoded, repetition, definition, self.layers, num_rows).checked(place)

    def _unzip(self, runs: Blocks, place: Place) -> tuple[NDArray[np.uint32], Blocks]:
        """Find control word and value of each entry; the first pass counts them."""
        totals = np.zeros(2, np.int64)
        controls = np.empty(0, np.uint32)
        addresses = sizes = np.empty(0, np.int64)
        for _ in range(2):
            bad = unzip(
                runs.addresses,
                runs.sizes,
                self.control_bytes,
                self.definition_bits,
                self.layers.max_visible,
                self.value_bytes,
                self.length_bytes,
                controls,
                addresses,
                sizes,
                totals,
            )
            if bad != DONE:
                raise place.corrupt("an entry of a full-zip page is cut off")
            if len(controls) == 0:
                controls = np.empty(totals[0], np.uint32)
                addresses, sizes = np.empty(totals[1], np.int64), np.empty(totals[1], np.int64)
        return controls, Blocks(addresses, sizes, runs.owner)


def _integers(view: memoryview, width: int) -> NDArray[np.int64]:
    return np.frombuffer(view, f"<u{width}").astype(np.int64)
