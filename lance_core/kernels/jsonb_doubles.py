"""Doubles as pylance spells them, from the shortest digits that Arrow finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.memory import address_of, bytes_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOT = 32
"""Bytes a double's text may take: sign, 17 digits, a point, and zeros or an exponent."""

_MINUS, _PLUS, _POINT, _DIGIT, _E = b"-+.0e"
_FIRST_PLAIN, _FIRST_LARGE = -5, 16
"""Powers of ten from which doubles are spelt without, and again with an exponent."""


@kernel
def digit_at(text: NDArray[np.uint8], at: int) -> int:
    """Return the value of a digit."""
    return np.int64(text[at]) - _DIGIT  # type: ignore[return-value]  # an int64


@kernel
def read_digits(text: NDArray[np.uint8], at: int, end: int, digits: NDArray[np.uint8]) -> int:
    """Take the digits of a number, from its first that is not zero; returns their power of ten.

    The last element of ``digits`` receives their number.
    """
    count, power, before_point = 0, -1, True
    while at < end and text[at] != _E:
        if text[at] == _POINT:
            before_point = False
        elif count > 0 or text[at] != _DIGIT:
            digits[count] = text[at]
            count += 1
            power += before_point
        elif not before_point:
            power -= 1
        at += 1
    if at < end:
        exponent, is_below = 0, text[at + 1] == _MINUS
        for place in range(at + 2, end):
            exponent = 10 * exponent + digit_at(text, place)
        power += -exponent if is_below else exponent
    while count > 1 and digits[count - 1] == _DIGIT:
        count -= 1
    digits[-1] = count
    return power


@kernel
def put_exponent(out: NDArray[np.uint8], at: int, power: int) -> int:
    """Write ``e``, a sign and the power; returns where they end."""
    out[at] = _E
    out[at + 1] = _MINUS if power < 0 else _PLUS
    at += 2
    power = abs(power)
    for unit in (100, 10, 1):
        if power >= unit:
            out[at] = _DIGIT + power // unit % 10
            at += 1
    return at


@kernel
def put_plain(
    out: NDArray[np.uint8], at: int, digits: NDArray[np.uint8], count: int, power: int
) -> int:
    """Write digits with zeros before or behind and a point; returns where they end."""
    for place in range(min(power, 0), max(count, power + 2)):
        out[at] = digits[place] if 0 <= place < count else _DIGIT
        at += 1
        if place == power:
            out[at] = _POINT
            at += 1
    return at


@kernel
def spell_double(text: NDArray[np.uint8], out: NDArray[np.uint8], digits: NDArray[np.uint8]) -> int:
    """Write one number anew; returns its bytes."""
    at = 0
    if text[0] == _MINUS:
        out[0] = _MINUS
        at = 1
    power = read_digits(text, at, text.shape[0], digits)
    count = digit_at(digits, digits.shape[0] - 1) + _DIGIT
    if count == 0:  # zero has no digit
        digits[0] = _DIGIT
        return put_plain(out, at, digits, 1, 0)
    if _FIRST_PLAIN <= power < _FIRST_LARGE:
        return put_plain(out, at, digits, count, power)
    for place in range(count):
        out[at] = digits[place]
        at += 1
        if place == 0 and count > 1:
            out[at] = _POINT
            at += 1
    return put_exponent(out, at, power)


@kernel
def spell_doubles(
    address: int, offsets: NDArray[np.int64], out: NDArray[np.uint8], sizes: NDArray[np.int64]
) -> int:
    """Spell doubles as pylance does.

    Parameters
    ----------
    address, offsets
        Where Arrow's texts of ``n`` finite doubles are.
    out
        Shape ``(n, SLOT)``; receives the texts.
    sizes
        Shape ``(n,)``; receives their bytes.

    Returns
    -------
    int
        Bytes of all texts.
    """
    text = bytes_at(address, offsets[-1])
    digits = np.empty(SLOT, np.uint8)
    total = 0
    for row in range(sizes.shape[0]):
        sizes[row] = spell_double(text[offsets[row] : offsets[row + 1]], out[row], digits)
        total += sizes[row]
    return total


@warmup
def _warm() -> None:
    none = np.zeros(0, np.int64)
    spell_doubles(
        address_of(np.zeros(1, np.uint8)),
        np.zeros(1, np.int64),
        np.zeros((0, SLOT), np.uint8),
        none,
    )
