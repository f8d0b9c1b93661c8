"""Fixed-size lists of primitives, elements one after another (file format, section 5.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.blocks import Blocks
from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.constant import AllNullElements
from lance_core.encodings.values import AllNull, FixedSizeLists, FixedWidth, with_validity
from lance_core.kernels.gather import join_bits
from lance_core.kernels.split import split_bits
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_MAX_DIMENSION = 1 << 31


@dataclass(frozen=True, slots=True)
class FixedSizeList(Compression):
    """``dimension`` elements per list; with ``has_validity`` a bitmap of elements comes first."""

    dimension: int
    inner: Compression
    has_validity: bool
    name: ClassVar[str] = "fixed-size list"

    @classmethod
    def of(
        cls, dimension: int, inner: Compression, has_validity: bool, place: Place
    ) -> FixedSizeList:
        """Check the dimension and return the encoding."""
        elements = dimension * inner.elements_per_value
        if not 0 < elements < _MAX_DIMENSION:
            raise place.corrupt(f"lists of {dimension} elements")
        return cls(dimension, inner, has_validity)

    @property
    def elements_per_value(self) -> int:
        """Innermost elements of one list."""
        return self.dimension * self.inner.elements_per_value

    @property
    def num_buffers(self) -> int:
        """Bitmaps of this and inner lists, then the elements."""
        return self.inner.num_buffers + int(self.has_validity)

    @property
    def raw_bits(self) -> int | None:
        """Bits of one list, if no bitmap is in between."""
        inner = self.inner.raw_bits
        return None if inner is None or self.has_validity else inner * self.dimension

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> FixedSizeLists:
        """Decode the elements of all chunks; bitmaps come before data, outermost first."""
        elements = counts * self.dimension
        if not self.has_validity:
            return self._lists(self.inner.decode_chunks(buffers, elements, place), counts)
        validity = _bits(buffers[0], elements, place)
        if isinstance(self.inner, AllNullElements):
            return self._lists(AllNull(validity.shape[0]), counts)
        items = self.inner.decode_chunks(buffers[1:], elements, place)
        return self._lists(with_validity(items, validity), counts)

    def decode_blocks(
        self, blocks: Blocks, counts: NDArray[np.int64], place: Place
    ) -> FixedSizeLists:
        """Decode the elements of all blocks."""
        if self.has_validity:
            raise place.unsupported("fixed-size lists with element nulls in a block")
        return self._lists(self.inner.decode_blocks(blocks, counts * self.dimension, place), counts)

    def decode_zipped(self, values: Blocks, place: Place) -> FixedSizeLists:
        """Decode single lists: bitmaps, outermost first, then the elements."""
        counts = np.ones(values.sizes.shape[0], np.int64)
        return self._lists(self.decode_zipped_elements(values, 1, place), counts)

    def decode_zipped_elements(self, values: Blocks, lists_per_value: int, place: Place) -> Values:
        """Decode the elements of ``lists_per_value`` lists out of each value."""
        elements = lists_per_value * self.dimension
        validity = None
        if self.has_validity:
            counts = np.full(values.sizes.shape[0], elements, np.int64)
            validity = _bits(values, counts, place)
            bitmap_bytes = (elements + 7) // 8
            values = Blocks(
                values.addresses + bitmap_bytes, values.sizes - bitmap_bytes, values.owner
            )
        items = self._zipped_items(values, elements, place)
        return items if validity is None else with_validity(items, validity)

    def _zipped_items(self, values: Blocks, elements: int, place: Place) -> Values:
        num_values = values.sizes.shape[0]
        if isinstance(self.inner, AllNullElements):
            return AllNull(num_values * elements)
        if isinstance(self.inner, FixedSizeList):
            items = self.inner.decode_zipped_elements(values, elements, place)
            return FixedSizeLists(items, self.inner.dimension, num_values * elements)
        counts = np.full(num_values, elements, np.int64)
        return self.inner.decode_blocks(values, counts, place)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        lists = pb.FixedSizeList(
            items_per_value=self.dimension,
            values=self.inner.message(),
            has_validity=self.has_validity,
        )
        return pb.CompressiveEncoding(fixed_size_list=lists)

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Write the bitmap of all chunks, if there is one, then what the elements need."""
        items = self._items(values)
        element_bounds = bounds * self.dimension
        buffers = self.inner.encode_chunks(items, element_bounds)
        if not self.has_validity:
            return buffers
        sizes = (np.diff(element_bounds) + 7) // 8
        bitmap = np.zeros(int(sizes.sum()), np.uint8)
        split_bits(_valid(items).view(np.uint8), element_bounds, bitmap)
        return (ChunkBuffer(bitmap, sizes), *buffers)

    def encode_zipped(self, values: Values) -> FixedWidth:
        """Write the bitmaps of each list, outermost first, and its elements behind them."""
        num_values = values.num_values
        parts = self._zipped_parts(values, num_values)
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return FixedWidth(rows.reshape(-1), rows.shape[1] * 8, num_values)

    def _zipped_parts(self, values: Values, num_rows: int) -> list[NDArray[np.uint8]]:
        """Return pieces of each row, shape ``(rows, bytes)``."""
        items = self._items(values)
        bitmaps = []
        if self.has_validity:
            valid = _valid(items).reshape(num_rows, -1)
            bitmaps = [np.packbits(valid, axis=1, bitorder="little")]
        if isinstance(self.inner, AllNullElements):
            return bitmaps
        if isinstance(self.inner, FixedSizeList):
            return bitmaps + self.inner._zipped_parts(items, num_rows)
        elements = items.num_values // num_rows
        bounds = np.arange(0, items.num_values + 1, elements, dtype=np.int64)
        data = self.inner.encode_blocks(items, bounds).data
        return [*bitmaps, data.reshape(num_rows, -1)]

    def _items(self, values: Values) -> Values:
        if isinstance(values, FixedSizeLists) and values.dimension == self.dimension:
            return values.items
        message = f"{type(values).__name__} was to be encoded as lists of {self.dimension}"
        raise TypeError(message)

    def _lists(self, items: Values, counts: NDArray[np.int64]) -> FixedSizeLists:
        return FixedSizeLists(items, self.dimension, int(counts.sum()))


def _valid(items: Values) -> NDArray[np.bool_]:
    if items.validity is None:
        return np.ones(items.num_values, np.bool_)
    return items.validity


def _bits(blocks: Blocks, counts: NDArray[np.int64], place: Place) -> NDArray[np.bool_]:
    if bool((blocks.sizes < (counts + 7) // 8).any()):
        raise place.corrupt("a bitmap of element nulls is cut off")
    bits = np.empty(int(counts.sum()), np.uint8)
    join_bits(blocks.addresses, counts, bits)
    return bits.view(np.bool_)
