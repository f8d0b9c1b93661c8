"""The text of a JSON list of numbers -> float32, for query vectors.

Making a Python float of each number, looking at its type and converting them again takes four times
as long as reading the digits, and every other thread waits for the GIL meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MINUS, _PLUS, _POINT, _ZERO, _NINE, _COMMA, _CLOSE = b"-+.09,]"
_EXPONENTS = (ord("e"), ord("E"))
_SPACES = (ord(" "), ord("\t"), ord("\n"), ord("\r"))
_LARGEST_POWER = 60
_POWERS = np.array([float(f"1e{power}") for power in range(_LARGEST_POWER + 1)])
_FULL = np.uint64(10**18)
"""A whole number from which on a further digit might not fit 64 bits."""
_MOST_EXPONENT = 1000
_BELOW, _ABOVE = 1 - 2.0**-50, 1 + 2.0**-50
"""Digits, power and their product are each rounded once, which moves a double by less than this."""
_NO_NUMBER = -1


def read_numbers(text: bytes, start: int, end: int) -> NDArray[np.float32] | None:
    """Return the numbers of a list, each rounded to double and then to float32.

    Parameters
    ----------
    text
        JSON.
    start, end
        Where the list begins, behind its opening bracket, and ends, behind the next closing one.

    Returns
    -------
    NDArray[np.float32] or None
        Shape ``(n,)``; infinite beyond float32. None where the list is empty, holds anything but
        numbers, or one that is not read in a simple way: with more than 19 digits, an exponent
        beyond 60, or so near the middle of two floats that only exact arithmetic can round it.
    """
    numbers = np.empty((end - start) // 2, np.float32)  # with its comma or bracket each takes two
    count = parse_numbers(text, start, numbers)
    return None if count == _NO_NUMBER else numbers[:count]


@kernel(brief=True, ordered=True)
def parse_numbers(text: bytes, start: int, numbers: NDArray[np.float32]) -> int:
    """Write the numbers of a list that has an end; returns how many, or -1.

    Nothing reads beyond its bracket, which belongs to no number. Digits are read here: a function
    that returned two values would double the time.
    """
    at, count = skip_spaces(text, start), 0
    while True:
        is_below = text[at] == _MINUS
        first = at + is_below
        digits, at = np.uint64(0), first
        while _ZERO <= text[at] <= _NINE and digits < _FULL:
            digits = digits * np.uint64(10) + np.uint64(text[at] - _ZERO)
            at += 1
        point = at
        if text[at] == _POINT:
            at += 1
            while _ZERO <= text[at] <= _NINE and digits < _FULL:
                digits = digits * np.uint64(10) + np.uint64(text[at] - _ZERO)
                at += 1
        if not is_decimal(text, first, point, at):
            return _NO_NUMBER
        scale = min(0, point + 1 - at)
        if text[at] == _EXPONENTS[0] or text[at] == _EXPONENTS[1]:
            exponent, at = parse_exponent(text, at + 1)
            scale += exponent
        elif is_below and digits == np.uint64(0) and at == point:
            return _NO_NUMBER  # -0 is a whole number, which has one zero only
        value = scaled(digits, scale)
        number = np.float32(value * _BELOW)
        if number != np.float32(value * _ABOVE):  # NaN too
            return _NO_NUMBER
        numbers[count] = -number if is_below else number
        count += 1
        at = skip_spaces(text, at)
        if text[at] != _COMMA:
            return count if text[at] == _CLOSE else _NO_NUMBER
        at = skip_spaces(text, at + 1)


@kernel
def is_decimal(text: bytes, first: int, point: int, end: int) -> bool:
    """Tell whether digits, up to where a point may be, and those behind it are as JSON has them."""
    has_whole = point == first + 1 or (point > first and text[first] != _ZERO)
    return has_whole and end != point + 1


@kernel(ordered=True)
def scaled(digits: np.uint64, scale: int) -> float:
    """Return digits times a power of ten, nearly; NaN where that is not in the table."""
    if scale > _LARGEST_POWER or scale < -_LARGEST_POWER:
        return np.nan
    whole = np.float64(digits)
    value: float = whole * _POWERS[scale] if scale >= 0 else whole / _POWERS[-scale]
    return value


@kernel
def parse_exponent(text: bytes, at: int) -> tuple[int, int]:
    """Take an exponent behind its letter; returns it, too large if it lacks one, and its end."""
    is_below = text[at] == _MINUS
    at += is_below or text[at] == _PLUS
    first, exponent = at, 0
    while _ZERO <= text[at] <= _NINE:
        exponent = min(exponent * 10 + text[at] - _ZERO, _MOST_EXPONENT)
        at += 1
    if at == first:
        return _MOST_EXPONENT, at
    return -exponent if is_below else exponent, at


@kernel
def skip_spaces(text: bytes, at: int) -> int:
    """Return where the next byte is that is no white space."""
    while text[at] in _SPACES:
        at += 1
    return at


@warmup
def _warm() -> None:
    read_numbers(b"1]", 0, 2)
