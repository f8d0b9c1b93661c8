"""When a dictionary pays, and how its items are stored (file format, section 7, rule 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lance_core.encodings.bitpacking import OutOfLineBitpacking
from lance_core.encodings.choose_numbers import Sized, choose_numbers, codec_of
from lance_core.encodings.dictionary_build import build_dictionary, fewest_items
from lance_core.encodings.flat import Flat
from lance_core.encodings.general import General
from lance_core.encodings.rle import Rle
from lance_core.encodings.values import FixedWidth, Variable
from lance_core.encodings.variable import VariableWidth
from lance_core.encodings.version import FileVersion
from lance_core.errors import UnsupportedFeatureError
from lance_core.kernels.bitpacking import UNSIGNED

if TYPE_CHECKING:
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.dictionary_build import Dictionary
    from lance_core.encodings.hints import Hints
    from lance_core.encodings.values import Values

T = TypeVar("T", int, float, str)

_FEWEST_VALUES = 100
_DIVISOR = 2
_SIZE_RATIO = 0.8
_WORTH = 0.9
_RUN_RATIO = 5 / 9
"""Bytes of a run of 32-bit indices to those of a run of 64-bit values."""
_WIDTHS = {FileVersion.V2_1: {128}, FileVersion.V2_2: {64, 128}}
"""Bits of the numbers for which readers of a version know dictionaries."""


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A dictionary, how its indices and items are stored, and about how many bytes both take."""

    dictionary: Dictionary
    index_encoding: Compression
    item_encoding: Compression
    num_bytes: int


def choose_dictionary(
    values: FixedWidth | Variable,
    offset_bits: int,
    other: Sized,
    hints: Hints,
    version: FileVersion,
) -> Coded | None:
    """Return how values are stored with a dictionary, or None if that does not pay.

    Parameters
    ----------
    values
        Only strings and wide numbers get dictionaries.
    offset_bits
        Of strings: 32 or 64.
    other
        How the values are stored without a dictionary.
    hints, version
        What the field asks for, and of which numbers the version has dictionaries.
    """
    if not _can_have(values, version):
        return None
    raw_bytes = _raw_bytes(values, offset_bits)
    allowed = int(
        min(_given(hints.dict_size_ratio, _SIZE_RATIO) * raw_bytes, _WORTH * other.num_bytes)
    )
    guess = fewest_items(values)
    if guess is None or _least_index_bytes(values.num_values, guess, other) > allowed:
        return None
    max_items = values.num_values // _given(hints.dict_divisor, _DIVISOR)
    dictionary = build_dictionary(values, max_items)
    if dictionary is None:
        return None
    indices = choose_numbers(dictionary.indices, hints)
    if indices.num_bytes > allowed:
        return None
    items = choose_items(dictionary.items, offset_bits, hints, version)
    num_bytes = indices.num_bytes + items.num_bytes
    if num_bytes > allowed:
        return None
    return Coded(dictionary, indices.encoding, items.encoding, num_bytes)


def choose_items(items: Values, offset_bits: int, hints: Hints, version: FileVersion) -> Sized:
    """Choose how the items of a dictionary, numbers or strings, are stored.

    2.1 has no compressed ones.
    """
    plain: Compression
    if isinstance(items, FixedWidth):
        plain = Flat(items.bits)
    elif isinstance(items, Variable):
        plain = VariableWidth(offset_bits)
    else:
        raise UnsupportedFeatureError("a dictionary of neither numbers nor strings")
    unchanged = _sized(plain, items)
    asked = _given(hints.dict_values_compression, "lz4")
    if version is FileVersion.V2_1 or asked == "none":
        return unchanged
    shrunk = [_sized(General(codec_of(asked, None), plain), items)]
    if isinstance(items, FixedWidth) and items.bits in UNSIGNED:
        width = max(int(items.integers().max(initial=0)).bit_length(), 1)
        shrunk.append(_sized(OutOfLineBitpacking(items.bits, width), items))
    smallest = min(shrunk, key=lambda form: form.num_bytes)
    return smallest if smallest.num_bytes < _WORTH * unchanged.num_bytes else unchanged


def _sized(encoding: Compression, items: Values) -> Sized:
    return Sized(encoding, len(encoding.encode_block(items)))


def _given(hint: T | None, default: T) -> T:
    return default if hint is None else hint


def _can_have(values: FixedWidth | Variable, version: FileVersion) -> bool:
    if values.num_values < _FEWEST_VALUES:
        return False
    return isinstance(values, Variable) or values.bits in _WIDTHS[version]


def _raw_bytes(values: FixedWidth | Variable, offset_bits: int) -> int:
    if isinstance(values, FixedWidth):
        return len(values.data)
    size = int(values.offsets[-1] - values.offsets[0])
    return size + values.num_values * offset_bits // 8


def _least_index_bytes(num_values: int, num_items: int, other: Sized) -> int:
    """Return what indices take at least: packed bits, or runs where the values are runs too."""
    packed = num_values * max(num_items - 1, 1).bit_length() // 8
    if isinstance(other.encoding, Rle):
        return min(packed, int(_RUN_RATIO * other.num_bytes))
    return packed
