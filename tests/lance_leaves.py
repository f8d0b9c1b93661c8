"""Arrays of every type without children, in the shapes that make writers choose other encodings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    _Maker = Callable[[pa.DataType, int, str, np.random.Generator], pa.Array]

SHAPES = ("random", "small", "sorted", "runs", "few", "constant", "edges")
TEXTS = ("prose", "numbers", "few", "constant", "empty", "edges", "long", "huge", "random")
_HUGE = 40_000  # a value above 32 KiB, which writers compress by itself
_FEW = 9
_DAY_MS = 86_400_000
_IN_A_DAY = {"s": 86_400, "ms": _DAY_MS, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_WORDS = tuple(
    "lance keeps columns in pages and pages in buffers; every row of a table lies at an "  # noqa: SIM905
    "offset; Ärger naïve 日本語 the quick brown fox jumps over".split()
)
_ODD_TEXTS = ("", "\0", "a", "\x7f", "é", "\U0001f600", "日本" * 90, " ", "x" * 255, "x" * 256)


def with_mask(array: pa.Array, mask: NDArray[np.bool_]) -> pa.Array:
    """Make values null and leave the bytes below them as they are.

    Parameters
    ----------
    array
        Without children, without nulls and not sliced.
    mask
        Shape ``(n,)``; true where null.
    """
    if not mask.any() or pa.types.is_null(array.type):
        return array
    bitmap = pa.py_buffer(np.packbits(~mask, bitorder="little"))
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(with_mask(array.indices, mask), array.dictionary)
    return pa.Array.from_buffers(array.type, len(array), [bitmap, *array.buffers()[1:]])


def leaf(kind: pa.DataType, num_values: int, shape: str, rng: np.random.Generator) -> pa.Array:
    """Return ``num_values`` values without nulls.

    Parameters
    ----------
    kind
        A type without children, or a dictionary.
    num_values
        How many.
    shape
        One of `SHAPES`, for text and binary one of `TEXTS`.
    rng
        Makes the values; the same generator makes the same ones.
    """
    if num_values == 0 or pa.types.is_null(kind):
        return pa.nulls(num_values, kind)
    if pa.types.is_boolean(kind):
        return pa.array(_numbers(np.dtype(np.uint8), num_values, shape, rng) % 2 == 1)
    return _maker(kind)(kind, num_values, shape, rng)


def _maker(kind: pa.DataType) -> _Maker:
    if pa.types.is_dictionary(kind):
        return _dictionary
    if is_text(kind):
        return _variable
    if pa.types.is_floating(kind):
        return _floats
    if pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return _wide
    return _temporal_or_integer


def is_text(kind: pa.DataType) -> bool:
    """Whether values have a length each, so that the shapes are those of `TEXTS`."""
    return kind in {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}


def _numbers(
    kind: np.dtype[np.generic], num_values: int, shape: str, rng: np.random.Generator
) -> NDArray[np.integer]:
    bounds = np.iinfo(kind)  # type: ignore[type-var]  # integers only are asked for
    low, high = int(bounds.min), int(bounds.max)
    small = rng.integers(0, 100, num_values).astype(kind)
    few = rng.integers(low, high, _FEW, kind, endpoint=True)
    edges = np.array([low, low + 1, 0, 1, high - 1, high], kind)
    match shape:
        case "random":
            numbers = rng.integers(low, high, num_values, kind, endpoint=True)
        case "small":
            numbers = small
        case "sorted":
            numbers = np.sort(rng.integers(0, min(high, 10**6), num_values).astype(kind))
        case "runs":
            numbers = np.repeat(small, rng.integers(1, 600, num_values))[:num_values]
        case "few":
            numbers = rng.choice(few, num_values)
        case "constant":
            numbers = np.full(num_values, few[0])
        case _:
            numbers = rng.choice(edges, num_values)
    return numbers


def _temporal_or_integer(
    kind: pa.DataType, num_values: int, shape: str, rng: np.random.Generator
) -> pa.Array:
    signed = not pa.types.is_unsigned_integer(kind)
    width = np.dtype(f"{'i' if signed else 'u'}{kind.bit_width // 8}")
    numbers = _numbers(width, num_values, shape, rng)
    if pa.types.is_time(kind):
        numbers = numbers % np.array(_IN_A_DAY[kind.unit], width)
    elif pa.types.is_date64(kind):
        numbers = np.maximum(numbers, -(2**62)) // _DAY_MS * _DAY_MS
    return pa.array(numbers).view(kind)


def _floats(kind: pa.DataType, num_values: int, shape: str, rng: np.random.Generator) -> pa.Array:
    width = np.dtype(f"f{kind.bit_width // 8}")
    limits = np.finfo(width)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, limits.max, limits.min]
    match shape:
        case "random":
            numbers = rng.standard_normal(num_values).astype(width)
        case "small":
            numbers = rng.integers(0, 100, num_values).astype(width)
        case "sorted":
            numbers = np.sort(rng.standard_normal(num_values).astype(width))
        case "edges":
            smallest = limits.smallest_subnormal
            numbers = rng.choice(np.array([*special, smallest], width), num_values)
        case _:  # any bits, which NaNs of many kinds are among
            bits = np.dtype(f"u{width.itemsize}")
            numbers = _numbers(bits, num_values, shape, rng).view(width)
    return pa.array(numbers, kind)


def _wide(kind: pa.DataType, num_values: int, shape: str, rng: np.random.Generator) -> pa.Array:
    """Return decimals and fixed-size binary: values of as many bytes as the type has."""
    width = kind.bit_width // 8
    size = {"few": _FEW, "runs": _FEW, "constant": 1}.get(shape, num_values)
    if pa.types.is_decimal(kind):
        digits = min(kind.precision, 18)
        numbers = rng.integers(-(10**digits) + 1, 10**digits, size)
        if shape == "edges":
            numbers = rng.choice(np.array([0, 1, -1, 10**digits - 1, 1 - 10**digits]), size)
        words = np.repeat((numbers >> 63)[:, None], width // 8, axis=1)  # the sign, extended
        words[:, 0] = numbers
        data = words.view(np.uint8)
    else:
        data = rng.integers(0, 256, (size, width), np.uint8)
        if shape == "edges":
            data = np.where(data < 128, 0, 255).astype(np.uint8)
    pool = pa.Array.from_buffers(kind, size, [None, pa.py_buffer(np.ascontiguousarray(data))])
    return pool if size == num_values else _drawn(pool, num_values, shape, rng)


def _drawn(pool: pa.Array, num_values: int, shape: str, rng: np.random.Generator) -> pa.Array:
    indices = rng.integers(0, len(pool), num_values)
    return pool.take(pa.array(np.sort(indices) if shape == "runs" else indices))


def _variable(kind: pa.DataType, num_values: int, shape: str, rng: np.random.Generator) -> pa.Array:
    if shape == "random" or (shape in {"long", "huge"} and pa.types.is_binary(kind)):
        return _random_bytes(kind, num_values, shape, rng)
    match shape:
        case "prose":
            words = rng.choice(np.array(_WORDS), (min(num_values, 500), 12))
            numbers = pa.array(np.arange(num_values)).cast(pa.string())
            texts = _drawn(pa.array([" ".join(row) for row in words]), num_values, shape, rng)
            texts = pc.binary_join_element_wise(texts, numbers, " ")
        case "numbers":
            texts = pa.array(rng.integers(0, 10**9, num_values)).cast(pa.string())
        case "few":
            pool = pa.array([f"category {number}" for number in range(_FEW)])
            texts = _drawn(pool, num_values, shape, rng)
        case "constant":
            texts = pa.repeat(pa.scalar(_ODD_TEXTS[int(rng.integers(len(_ODD_TEXTS)))]), num_values)
        case "empty":
            texts = pa.repeat(pa.scalar(""), num_values)
        case "edges":
            texts = _drawn(pa.array(_ODD_TEXTS), num_values, shape, rng)
        case "long":
            pool = pa.array([" ".join(rng.choice(np.array(_WORDS), 60)) for _ in range(40)])
            texts = _drawn(pool, num_values, shape, rng)
        case _:
            pool = pa.array(["ab" * (_HUGE // 2), "é" * _HUGE, *_ODD_TEXTS, *("abcdefghijkl")])
            texts = _drawn(pool, num_values, shape, rng)
    return texts.cast(kind)


def _random_bytes(
    kind: pa.DataType, num_values: int, shape: str, rng: np.random.Generator
) -> pa.Array:
    """Return values that do not compress; text made of one-byte characters."""
    longest = {"long": 600, "huge": 2 * _HUGE}.get(shape, 60)
    lengths = rng.integers(0, longest, num_values)
    width = np.int64 if kind in {pa.large_string(), pa.large_binary()} else np.int32
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(width)
    is_string = kind in {pa.string(), pa.large_string()}
    data = rng.integers(0, 128 if is_string else 256, int(offsets[-1]), np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, num_values, buffers)


def _dictionary(
    kind: pa.DataType, num_values: int, shape: str, rng: np.random.Generator
) -> pa.Array:
    """Return indices into a few distinct items, not all of which need be used."""
    items = leaf(kind.value_type, 20, "random", rng).unique()
    indices = _numbers(np.dtype(np.uint8), num_values, shape, rng) % len(items)
    return pa.DictionaryArray.from_arrays(pa.array(indices).cast(kind.index_type), items)
