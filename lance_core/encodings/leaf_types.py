"""What the type string of a field says about the bytes of its values (file format, 2.2)."""

from __future__ import annotations

from lance_core.encodings.variable import NARROW_BITS, WIDE_BITS

_WIDE = frozenset({"large_string", "large_binary", "json"})
_DICTIONARY = "dict:"


def offset_bits(logical_type: str) -> int:
    """Return the width of the offsets of strings: that of the Arrow type written."""
    return WIDE_BITS if logical_type in _WIDE else NARROW_BITS


def dictionary_types(logical_type: str) -> tuple[str, int]:
    """Return the type string of a dictionary field's items, and the bits of its indices."""
    value_type, index_type, _ = logical_type.removeprefix(_DICTIONARY).rsplit(":", 2)
    return value_type, int(index_type.lstrip("uint"))
