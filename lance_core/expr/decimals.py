"""Decimals as whole numbers without their point: what Arrow rounds, or has no room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64] | NDArray[np.object_]
    """Whole numbers, Python's where one is beyond int64."""

_MOST_DIGITS_OF_INT64 = 18
_MOST_DIGITS = 76
_WORD = 1 << 64


def unscaled(values: pa.Array) -> Numbers:
    """Return decimals without their point, 0 for nulls: int64 if all are, else Python's numbers.

    Parameters
    ----------
    values
        Decimals of 128 or 256 bits.
    """
    num_words = values.type.bit_width // 64
    buffer = values.buffers()[1]
    if len(values) == 0 or buffer is None:
        return np.zeros(len(values), np.int64)
    count = (values.offset + len(values)) * num_words
    words = np.frombuffer(buffer, np.int64, count).reshape(-1, num_words)[values.offset :]
    if values.null_count > 0:  # not by Arrow, which makes other decimals of those of few digits
        words = np.where(values.is_valid().to_numpy(zero_copy_only=False)[:, None], words, 0)
    if bool(np.all(words[:, 1:] == (words[:, :1] >> 63))):
        return words[:, 0]
    numbers = words[:, -1].astype(object)
    for at in range(num_words - 2, -1, -1):
        numbers = numbers * _WORD + words[:, at].view(np.uint64).astype(object)
    return numbers


def scaled(numbers: Numbers, kind: pa.DataType, is_known: pa.Array) -> pa.Array:
    """Return whole numbers as decimals of a type, null where they are not known.

    Raises
    ------
    pa.ArrowInvalid
        One has more digits than the type.
    """
    limits = (numbers.min(), numbers.max()) if len(numbers) > 0 else (0,)
    largest = max(abs(int(each)) for each in limits)
    if largest >= 10**kind.precision:
        raise pa.ArrowInvalid(f"{largest} has more than the {kind.precision} digits of {kind}")
    num_bytes = kind.bit_width // 8
    if numbers.dtype == np.int64:
        words = np.repeat(numbers[:, None] >> 63, num_bytes // 8, axis=1)
        words[:, 0] = numbers
        data = words.tobytes()
    else:
        data = b"".join(int(each).to_bytes(num_bytes, "little", signed=True) for each in numbers)
    bits = pa.concat_arrays([is_known]).buffers()[1]
    return pa.Array.from_buffers(kind, len(numbers), [bits, pa.py_buffer(data)])


def multiplied(left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    """Multiply decimals.

    Raises
    ------
    pa.ArrowInvalid
        A product has more digits than the type.
    """
    if left.type.precision + right.type.precision < _MOST_DIGITS:
        wide = (pa.decimal256(each.type.precision, each.type.scale) for each in (left, right))
        return pc.multiply(*map(pa.Array.cast, (left, right), wide)).cast(kind)
    if left.type.scale + right.type.scale > kind.scale:
        raise pa.ArrowInvalid(f"products have more than {kind.scale} digits behind the point")
    is_known = pc.and_(left.is_valid(), right.is_valid())
    return scaled(unscaled(left).astype(object) * unscaled(right), kind, is_known)


def divided(left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    """Divide decimals; digits that the type of the result has not are cut off.

    Raises
    ------
    pa.ArrowInvalid
        Something is divided by zero, or has more digits than the type.
    """
    shift = kind.scale - left.type.scale + right.type.scale
    over = _shifted(unscaled(left), max(shift, 0))
    under, is_known = _divisors(left, right, max(-shift, 0))
    return scaled(_quotients(over, under), kind, is_known)


def remainders(left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return what division of decimals to whole numbers leaves, with the sign of the first.

    Raises
    ------
    pa.ArrowInvalid
        Something is divided by zero.
    """
    over = _shifted(unscaled(left), kind.scale - left.type.scale)
    under, is_known = _divisors(left, right, kind.scale - right.type.scale)
    return scaled(over - _quotients(over, under) * under, kind, is_known)


def _shifted(numbers: Numbers, digits: int) -> Numbers:
    """Return numbers with zeros behind them."""
    limit = 10 ** max(_MOST_DIGITS_OF_INT64 - digits, 0)
    if numbers.dtype == np.int64 and bool(np.all((numbers < limit) & (numbers > -limit))):
        digits = min(digits, _MOST_DIGITS_OF_INT64)  # zeros, if there were more
        return numbers * int(10**digits)
    return numbers.astype(object) * int(10**digits)


def _divisors(left: pa.Array, right: pa.Array, digits: int) -> tuple[Numbers, pa.Array]:
    """Return what is divided by, 1 where either is null, and where neither is."""
    is_known = pc.and_(left.is_valid(), right.is_valid())
    numbers = np.where(right.is_valid().to_numpy(zero_copy_only=False), unscaled(right), 1)
    if bool(np.any(numbers == 0)):
        raise pa.ArrowInvalid("divide by zero")
    return _shifted(numbers, digits), is_known


def _quotients(over: Numbers, under: Numbers) -> Numbers:
    """Return quotients of whole numbers, cut towards zero."""
    size = np.abs(over) // np.abs(under)
    return np.where((over < 0) != (under < 0), -size, size)


def as_floats(values: pa.Array) -> NDArray[np.float64]:
    """Return decimals as floats; 0 for nulls.

    Notes
    -----
    Rounded as a whole number and once more by the division, as in pylance 14.0.2: the nearest
    float up to 15 digits, then that or one beside it.
    """
    numbers: NDArray[np.float64] = unscaled(values).astype(np.float64)
    scale = values.type.scale
    shift = float(10 ** abs(scale))
    return numbers / shift if scale >= 0 else numbers * shift
