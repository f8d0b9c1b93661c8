"""Values of a column in the form in which an index orders and finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError
from lance_core.index.registry import UnusableSegmentError
from lance_core.kernels.byte_keys import are_ascending, search_byte_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS_IN_BYTE = 8
_TEXTS = frozenset((pa.string(), pa.large_string(), pa.binary(), pa.large_binary()))

K = TypeVar("K")


class Keys(Protocol):
    """Values, none of them null, that can be compared with others of their type.

    Ordered as scalar index page, section 2.1, says: floats as -NaN, -inf, ..., -0.0, 0.0, ..., inf,
    NaN; texts and binaries by bytes.
    """

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Memory held."""

    def part(self, start: int, stop: int) -> Self:
        """Return the keys ``[start, stop)``, sharing memory."""

    def take(self, positions: NDArray[np.int64]) -> Self:
        """Return the keys at ``positions``, copied."""

    def order(self) -> NDArray[np.int64]:
        """Return the positions of the keys in ascending order."""

    def is_ascending(self) -> bool:
        """Tell whether no key is less than the one before it."""

    def search(self, needles: Keys, *, is_behind_equals: bool) -> NDArray[np.int64]:
        """Tell for each needle how many of the keys, which ascend, stand before it.

        Parameters
        ----------
        needles
            Of the same type, in any order.
        is_behind_equals
            Whether keys that equal a needle stand before it.
        """


class NumberKeys:
    """Numbers, truth values and times, as whole numbers of the same order."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: NDArray[np.integer]) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self._numbers.nbytes)

    def part(self, start: int, stop: int) -> NumberKeys:
        """Return the keys ``[start, stop)``, sharing memory."""
        return NumberKeys(self._numbers[start:stop])

    def take(self, positions: NDArray[np.int64]) -> NumberKeys:
        """Return the keys at ``positions``, copied."""
        return NumberKeys(self._numbers[positions])

    def order(self) -> NDArray[np.int64]:
        """Return the positions of the keys in ascending order."""
        return np.argsort(self._numbers)

    def is_ascending(self) -> bool:
        """Tell whether no key is less than the one before it."""
        return bool((self._numbers[1:] >= self._numbers[:-1]).all())

    def search(self, needles: Keys, *, is_behind_equals: bool) -> NDArray[np.int64]:
        """Tell for each needle how many of the keys, which ascend, stand before it."""
        own = _of_kind(needles, NumberKeys)
        found: NDArray[np.int64] = np.searchsorted(
            self._numbers, own._numbers, "right" if is_behind_equals else "left"
        )
        return found


class ByteKeys:
    """Texts, binaries and decimals, as byte strings of the same order."""

    __slots__ = ("_array", "_base", "_offsets")

    def __init__(self, array: pa.LargeBinaryArray) -> None:
        _, offsets, data = array.buffers()
        self._array = array
        self._base = 0 if data is None else data.address
        size = len(array) + 1 if offsets is not None else 0
        # Copied, because kernels take no read-only arrays.
        self._offsets = (
            np.frombuffer(offsets, np.int64, size, array.offset * np.int64().itemsize).copy()
            if size > 0
            else np.zeros(1, np.int64)
        )

    def __len__(self) -> int:
        return len(self._array)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self._array.nbytes + self._offsets.nbytes)

    def part(self, start: int, stop: int) -> ByteKeys:
        """Return the keys ``[start, stop)``, sharing memory."""
        return ByteKeys(self._array.slice(start, stop - start))

    def take(self, positions: NDArray[np.int64]) -> ByteKeys:
        """Return the keys at ``positions``, copied."""
        return ByteKeys(self._array.take(pa.array(positions)))

    def order(self) -> NDArray[np.int64]:
        """Return the positions of the keys in ascending order."""
        order: NDArray[np.int64] = pc.array_sort_indices(self._array).to_numpy().astype(np.int64)
        return order

    def is_ascending(self) -> bool:
        """Tell whether no key is less than the one before it."""
        return are_ascending(self._base, self._offsets)

    def search(self, needles: Keys, *, is_behind_equals: bool) -> NDArray[np.int64]:
        """Tell for each needle how many of the keys, which ascend, stand before it."""
        own = _of_kind(needles, ByteKeys)
        found = np.empty(len(own), np.int64)
        search_byte_keys(
            self._base, self._offsets, own._base, own._offsets, is_behind_equals, found
        )
        return found


def keys_of(array: pa.Array) -> Keys:
    """Return values, none of them null, as keys; memory is copied or shared.

    Raises
    ------
    UnusableSegmentError
        Values of the type have no order.
    """
    kind = array.type
    if _is_text(kind) or pa.types.is_fixed_size_binary(kind):
        return ByteKeys(array.cast(pa.large_binary()))
    if pa.types.is_decimal(kind):
        return ByteKeys(_ordered_decimals(array))
    if pa.types.is_boolean(kind):
        return NumberKeys(array.cast(pa.uint8()).to_numpy())
    if pa.types.is_floating(kind):
        return NumberKeys(_ordered_floats(_numbers(array)))
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return NumberKeys(_numbers(array))
    raise UnusableSegmentError(f"keys of type {kind} are not supported")


def has_prefixes(kind: pa.DataType) -> bool:
    """Tell whether values of a type can begin with others."""
    return _is_text(kind)


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the least byte string above all those that begin with a prefix; None = there is none.

    >>> after_prefix(b"ab"), after_prefix(bytes([97, 255])), after_prefix(bytes([255]))
    (b'ac', b'b', None)
    """
    head = prefix.rstrip(b"\xff")
    return None if head == b"" else head[:-1] + bytes([head[-1] + 1])


def _of_kind(keys: Keys, kind: type[K]) -> K:
    if not isinstance(keys, kind):
        raise InvalidRequestError("keys of different types are compared")
    return keys


def _is_text(kind: pa.DataType) -> bool:
    return kind in _TEXTS


def _numbers(array: pa.Array) -> NDArray[np.integer]:
    """Return the stored bits of numbers as signed ones, or unsigned where these are."""
    width = array.type.bit_width // _BITS_IN_BYTE
    sign = "u" if pa.types.is_unsigned_integer(array.type) else "i"
    kind = np.dtype(f"<{sign}{width}")
    if len(array) == 0:
        return np.zeros(0, kind)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * width)


def _ordered_floats(bits: NDArray[np.integer]) -> NDArray[np.integer]:
    """Turn the bits of floats into whole numbers of the same order."""
    info = np.iinfo(bits.dtype)
    # The bits of negative ones ascend as they fall, apart from the sign.
    ordered: NDArray[np.integer] = np.where(bits < 0, bits ^ info.max, bits)
    return ordered


def _ordered_decimals(array: pa.Array) -> pa.LargeBinaryArray:
    """Turn decimals of one scale into byte strings of the same order.

    They are whole numbers in two's complement, the lowest byte first.
    """
    width = array.type.byte_width
    size = len(array) * width
    stored = (
        np.frombuffer(array.buffers()[1], np.uint8, size, array.offset * width)
        if size > 0
        else np.zeros(0, np.uint8)
    )
    ordered = stored.reshape(-1, width)[:, ::-1].copy()
    ordered[:, 0] ^= 0x80
    offsets = np.arange(0, size + 1, width, dtype=np.int64)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(array), [None, pa.py_buffer(offsets), pa.py_buffer(ordered)]
    )
