"""Encoded values read back through the decoders, and what both sides must agree on."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lance_core.encodings.blocks import Blocks
from lance_core.encodings.describe import describe
from lance_core.encodings.place import Place
from lance_core.encodings.values import (
    AllNull,
    FixedSizeLists,
    FixedWidth,
    Packed,
    Variable,
)
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.compression import ChunkBuffer, Compression
    from lance_core.encodings.values import Values

PLACE = Place("written.lance", "x")
K = TypeVar("K")


def of_kind(kind: type[K], value: object) -> K:
    """Return ``value``, which must be of that kind."""
    assert isinstance(value, kind)
    return value


def described(encoding: Compression) -> Compression:
    """Return the decoder that the message of ``encoding`` describes."""
    decoder = describe(encoding.message(), PLACE)
    assert decoder.message() == encoding.message()
    return decoder


def blocks(buffer: ChunkBuffer) -> Blocks:
    """Return each chunk's bytes at an address of its own, aligned as in a chunk."""
    assert len(buffer.data) == buffer.sizes.sum()
    starts = np.cumsum((buffer.sizes + 7) // 8 * 8) - (buffer.sizes + 7) // 8 * 8
    room = np.zeros(int(((buffer.sizes + 7) // 8 * 8).sum()) + 8, np.uint8)
    position = 0
    for start, size in zip(starts.tolist(), buffer.sizes.tolist(), strict=True):
        room[start : start + size] = buffer.data[position : position + size]
        position += size
    return Blocks(address_of(room) + starts, buffer.sizes, room)


def through_chunks(encoding: Compression, values: Values, bounds: NDArray[np.int64]) -> Values:
    """Encode values as chunks and decode them."""
    decoder = described(encoding)
    buffers = encoding.encode_chunks(values, bounds)
    assert len(buffers) == encoding.num_buffers == decoder.num_buffers
    return decoder.decode_chunks([blocks(buffer) for buffer in buffers], np.diff(bounds), PLACE)


def through_blocks(encoding: Compression, values: Values, bounds: NDArray[np.int64]) -> Values:
    """Encode values as blocks and decode them."""
    encoded = blocks(encoding.encode_blocks(values, bounds))
    return described(encoding).decode_blocks(encoded, np.diff(bounds), PLACE)


def through_block(encoding: Compression, values: Values) -> Values:
    """Encode values as one block and decode it."""
    return through_blocks(encoding, values, np.array([0, values.num_values], np.int64))


def through_zipped(encoding: Compression, values: Values) -> Values:
    """Encode single values and decode them."""
    zipped = encoding.encode_zipped(values)
    assert zipped.num_values == values.num_values
    if isinstance(zipped, Variable):
        starts, sizes = zipped.offsets[:-1], np.diff(zipped.offsets)
    else:
        assert isinstance(zipped, FixedWidth)
        sizes = np.full(zipped.num_values, zipped.value_bytes)
        starts = np.arange(zipped.num_values) * zipped.value_bytes
    data = np.append(zipped.data, np.uint8(0))
    entries = Blocks(address_of(data) + starts, sizes, data)
    return described(encoding).decode_zipped(entries, PLACE)


def fixed(array: NDArray[np.generic]) -> FixedWidth:
    """Return the elements of an array as values."""
    if array.dtype == np.bool_:
        return FixedWidth(array.view(np.uint8), 1, len(array))
    return FixedWidth(array.view(np.uint8), array.dtype.itemsize * 8, len(array))


def strings_of(items: Sequence[bytes]) -> Variable:
    """Return byte strings as values."""
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum([len(item) for item in items], out=offsets[1:])
    return Variable(offsets, np.frombuffer(b"".join(items), np.uint8))


def plain(values: Values) -> list[object]:
    """Return values as Python objects: bytes, lists, tuples, None for nulls."""
    if isinstance(values, AllNull):
        return [None] * values.num_values
    validity = values.validity
    if validity is None:
        validity = np.ones(values.num_values, np.bool_)
    rows = _rows(values)
    return [row if ok else None for row, ok in zip(rows, validity.tolist(), strict=True)]


def _rows(values: Values) -> list[object]:
    if isinstance(values, FixedWidth):
        width = values.value_bytes
        data = values.data.tobytes()
        return [data[index * width : (index + 1) * width] for index in range(values.num_values)]
    if isinstance(values, Variable):
        data, ends = values.data.tobytes(), values.offsets.tolist()
        return [data[start:stop] for start, stop in pairwise(ends)]
    if isinstance(values, FixedSizeLists):
        items, size = plain(values.items), values.dimension
        return [items[index * size : (index + 1) * size] for index in range(values.num_values)]
    assert isinstance(values, Packed)
    return list(zip(*(plain(child) for child in values.children), strict=True))
