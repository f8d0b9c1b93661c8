"""Fields of index details as Protocol Buffers spell them."""

from __future__ import annotations

_VARINT_BITS = 7
_NUMBER, _BYTES = 0, 2
_KIND_BITS = 3


def number_field(field: int, number: int) -> bytes:
    """Spell a number, or a truth value.

    Examples
    --------
    >>> number_field(1, 300).hex()
    '08ac02'
    """
    return _varint(field << _KIND_BITS | _NUMBER) + _varint(number)


def bytes_field(field: int, value: bytes) -> bytes:
    """Spell bytes, a text in UTF-8, or another message."""
    return _varint(field << _KIND_BITS | _BYTES) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    pieces = []
    while number >> _VARINT_BITS > 0:
        pieces.append(number & 0x7F | 0x80)
        number >>= _VARINT_BITS
    return bytes([*pieces, number])
