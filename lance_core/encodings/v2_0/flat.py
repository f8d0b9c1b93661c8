"""Flat: values of one width in one buffer, perhaps compressed as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.page import RawRows
from lance_core.encodings.values import BOOL_BITS, FixedWidth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.general import Codec
    from lance_core.encodings.page import Page
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps


@dataclass(frozen=True, slots=True)
class FlatArray:
    """``bits`` per value: 1, or a multiple of 8, even 0; ``buffer`` counts the page's buffers."""

    bits: int
    buffer: int
    codec: Codec | None

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Compare the size of the buffer with that of its values."""
        if self.buffer >= len(page.buffers):
            raise place.corrupt(f"there is no buffer {self.buffer}, only {len(page.buffers)}")
        size = page.buffers[self.buffer][1]
        if self.codec is None and size * 8 < num_values * self.bits:
            raise place.corrupt(f"{num_values} values of {self.bits} bits in {size} bytes")

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[FixedWidth]:
        """Read the bytes of the values; a compressed buffer is read whole."""
        spans = [(start * self.bits // 8, (stop * self.bits + 7) // 8) for start, stop in pieces]
        if self.codec is None:
            views = yield [page.span(self.buffer, start, stop) for start, stop in spans]
        else:
            (packed,) = yield [page.whole(self.buffer)]
            whole = memoryview(self.codec.decompress(packed, place))
            if any(stop > len(whole) for _, stop in spans):
                raise place.corrupt(f"a compressed buffer holds only {len(whole)} bytes")
            views = [whole[start:stop] for start, stop in spans]
        parts = [np.frombuffer(view, np.uint8) for view in views]
        if self.bits == BOOL_BITS:
            parts = [_bits(part, *piece) for part, piece in zip(parts, pieces, strict=True)]
        data = np.concatenate(parts) if len(parts) > 0 else np.empty(0, np.uint8)
        return FixedWidth(data, self.bits, sum(stop - start for start, stop in pieces))

    def raw(self, page: Page) -> RawRows | None:
        """Values of whole bytes lie where the buffer begins."""
        if self.codec is not None or self.bits in {0, BOOL_BITS}:
            return None
        return RawRows(page.buffers[self.buffer][0], self.bits // 8)


def _bits(bitmap: NDArray[np.uint8], start: int, stop: int) -> NDArray[np.uint8]:
    skip = start % 8
    return np.unpackbits(bitmap, bitorder="little")[skip : skip + stop - start]
