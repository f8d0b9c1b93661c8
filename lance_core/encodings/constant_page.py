"""Constant pages: one value, or none, for all rows; levels if there are any (4.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.blocks import blocks_of
from lance_core.encodings.levels import PageData, row_starts
from lance_core.encodings.mini_block import levels_of
from lance_core.encodings.page import ConstantRow
from lance_core.encodings.values import BOOL_BITS, AllNull, FixedWidth, Variable, constant_rows

if TYPE_CHECKING:
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.levels import Layers, Levels
    from lance_core.encodings.page import DirectPage, Page, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.values import Values

_NUM_LEVEL_BUFFERS = 2
_MAX_SCALAR_BUFFERS = 3
_MAX_LEVELS = 1 << 26
"""Compressed levels may take no bytes at all; writers cut pages at 65,535 levels."""
_OFFSET_WIDTHS = {8: 4, 16: 8}


@dataclass(frozen=True, slots=True, eq=False)
class _ConstantState:
    """The one value, None for null, and the levels of the page."""

    value: Values | None
    repetition: Levels | None
    definition: Levels | None

    @property
    def nbytes(self) -> int:
        """Memory of the three."""
        parts = (self.value, self.repetition, self.definition)
        return sum(part.nbytes for part in parts if part is not None)


@dataclass(frozen=True, slots=True, eq=False)
class ConstantPage:
    """The layout message, decoded.

    ``is_bool`` is the type of the column: a boolean and an 8-bit value look alike here.
    """

    layers: Layers
    inline_value: bytes | None
    repetition: Compression | None
    definition: Compression | None
    num_repetition: int
    num_definition: int
    is_bool: bool

    def check(self, page: Page, place: Place) -> None:
        """Raise ``CorruptFileError`` if the page's buffers contradict the layout."""
        if max(self.num_repetition, self.num_definition) > _MAX_LEVELS:
            raise place.corrupt(f"a constant page of {self.num_definition} levels")
        if len(page.buffers) > _MAX_SCALAR_BUFFERS:
            raise place.corrupt(f"a constant page has {len(page.buffers)} buffers")
        if self.is_bool and self.inline_value is not None and len(self.inline_value) != 1:
            raise place.corrupt("a constant value of the wrong width")
        if self.inline_value is not None and self._has_scalar(page):
            raise place.corrupt("a constant page has two values")
        if self.layers.num_lists > 0 and not self._has_levels(page):
            raise place.corrupt("a constant page of lists has no levels")

    def direct(self, page: Page) -> DirectPage | None:
        """Only a value of some fixed width without levels is addressable."""
        if self.inline_value in {None, b""} or self._has_levels(page) or self.is_bool:
            return None
        return ConstantRow(self.inline_value)

    def read(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[list[PageData]]:
        """Repeat the value for the rows; cut the levels."""
        state = cast("_ConstantState | None", page.loaded.state)
        if state is None:
            buffers = yield [page.whole(buffer) for buffer in range(len(page.buffers))]
            state = self._load(page, [bytes(buffer) for buffer in buffers], place)
            page.loaded.state = state
        if state.repetition is None:
            return [self._rows(state, start, stop, stop - start, place) for start, stop in pieces]
        starts = np.append(row_starts(state.repetition, self.layers), len(state.repetition))
        return [
            self._rows(state, int(starts[start]), int(starts[stop]), stop - start, place)
            for start, stop in pieces
        ]

    def _has_levels(self, page: Page) -> bool:
        return len(page.buffers) >= _NUM_LEVEL_BUFFERS

    def _has_scalar(self, page: Page) -> bool:
        return len(page.buffers) in {1, _MAX_SCALAR_BUFFERS}

    def _load(self, page: Page, buffers: list[bytes], place: Place) -> _ConstantState:
        repetition = definition = None
        if self._has_levels(page):
            repetition = _stream(buffers[-2], self.repetition, self.num_repetition, place)
            definition = _stream(buffers[-1], self.definition, self.num_definition, place)
        if repetition is None:
            num_levels = page.num_rows
            if self.layers.num_lists > 0:
                raise place.corrupt("a constant page of lists has no repetition levels")
        else:
            num_levels = len(repetition)
            if len(row_starts(repetition, self.layers)) != page.num_rows:
                raise place.corrupt(f"levels of other than {page.num_rows} rows")
        if definition is not None and len(definition) != num_levels:
            raise place.corrupt(f"{len(definition)} definition levels, not {num_levels}")
        value = self._value(buffers[0] if self._has_scalar(page) else None, place)
        return _ConstantState(value, repetition, definition)

    def _value(self, scalar: bytes | None, place: Place) -> Values | None:
        if self.inline_value is not None:
            bits = BOOL_BITS if self.is_bool else 8 * len(self.inline_value)
            return FixedWidth(_bytes(self.inline_value), bits, 1)
        return None if scalar is None else _scalar(scalar, place)

    def _rows(
        self, state: _ConstantState, begin: int, end: int, num_rows: int, place: Place
    ) -> PageData:
        """Cut level entries ``[begin, end)`` and repeat the value for the visible ones."""
        repetition = None if state.repetition is None else state.repetition[begin:end]
        definition = None if state.definition is None else state.definition[begin:end]
        count = end - begin
        if definition is not None:
            count = int(np.count_nonzero(definition <= self.layers.max_visible))
        values = AllNull(count) if state.value is None else constant_rows(state.value, count)
        return PageData(values, repetition, definition, self.layers, num_rows).checked(place)


def _bytes(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8).copy()  # kernels take writable arrays only


def _stream(buffer: bytes, encoding: Compression | None, count: int, place: Place) -> Levels | None:
    """Decode a level stream; an empty buffer means that there is none."""
    if len(buffer) == 0:
        return None
    if encoding is not None:
        counts = np.array([count], np.int64)
        return levels_of(encoding.decode_blocks(blocks_of([buffer]), counts, place), place)
    if len(buffer) % 2 != 0:
        raise place.corrupt(f"levels of 16 bits fill {len(buffer)} bytes")
    return np.frombuffer(buffer, "<u2")


def _scalar(scalar: bytes, place: Place) -> Values:
    """Decode the buffer of one value: count, lengths, then Arrow buffers."""
    count = int.from_bytes(scalar[:4], "little")
    header = 4 * (count + 1)
    if count not in {1, 2} or len(scalar) < header:
        raise place.corrupt(f"a constant value of {count} buffers in {len(scalar)} bytes")
    lengths = np.frombuffer(scalar, "<u4", count, 4).tolist()
    if header + sum(lengths) != len(scalar):
        raise place.corrupt("the buffers of a constant value do not fill theirs")
    first = scalar[header : header + lengths[0]]
    if count == 1:
        if len(first) == 0:
            raise place.corrupt("a constant value of no bytes")
        return FixedWidth(_bytes(first), 8 * len(first), 1)
    if lengths[0] not in _OFFSET_WIDTHS:
        raise place.corrupt(f"a constant string with {lengths[0]} bytes of offsets")
    offsets = np.frombuffer(first, f"<i{_OFFSET_WIDTHS[lengths[0]]}").astype(np.int64)
    if offsets.tolist() != [0, lengths[1]]:
        raise place.corrupt("the offsets of a constant string leave it")
    return Variable(offsets, _bytes(scalar[header + lengths[0] :]))
