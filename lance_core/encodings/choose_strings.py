"""How byte strings are stored: as they are, as FSST codes, or compressed on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.choose_numbers import CODECS, Sized, codec_of
from lance_core.encodings.fsst import Fsst, compressed
from lance_core.encodings.fsst_train import train
from lance_core.encodings.general import General
from lance_core.encodings.values import Variable
from lance_core.encodings.variable import VariableWidth
from lance_core.kernels.gather import join_bytes
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.hints import Hints

_SAMPLE_BYTES = 32 << 10
_PIECE_BYTES = 128
_FEWEST_BYTES = 4 << 10
_TABLE_BYTES = 2312
_WORTH = 0.9
_RANDOM_BITS = 7.5
"""Bytes with that much information hardly repeat, so that training would be in vain."""
HUGE_BYTES = 32 << 10
"""Full-zip values above this are compressed one by one (file format, section 7, rule 6)."""


def choose_strings(values: Variable, offset_bits: int, hints: Hints, *, zipped: bool) -> Sized:
    """Choose how to store strings.

    Parameters
    ----------
    values
        At least one.
    offset_bits
        32 or 64.
    hints
        What the field asks for.
    zipped
        For a full-zip page, where values above 32 KiB are compressed by default.
    """
    plain = VariableWidth(offset_bits)
    size = _bytes_of(values) + values.num_values * offset_bits // 8
    unchanged = Sized(plain, size)
    if hints.compression == "none":
        return unchanged
    if hints.compression in CODECS:
        # observed with pylance 14.0.2: single values are zstd whatever is asked for
        codec = "zstd" if zipped else hints.compression
        return _general(values, plain, codec, hints.compression_level)
    longest = int(np.diff(values.offsets).max(initial=0))
    if zipped and longest > HUGE_BYTES and hints.compression is None:
        return _general(values, plain, "zstd", hints.compression_level)
    return _symbols(values, unchanged, is_asked_for=hints.compression == "fsst")


def _bytes_of(values: Variable) -> int:
    return int(values.offsets[-1] - values.offsets[0])


def _general(values: Variable, plain: Compression, codec: str, level: int | None) -> Sized:
    return Sized(General(codec_of(codec, level), plain), _bytes_of(values))


def _symbols(values: Variable, unchanged: Sized, *, is_asked_for: bool) -> Sized:
    """Train FSST and see what it would save."""
    size = _bytes_of(values)
    if size == 0 or (size < _FEWEST_BYTES and not is_asked_for):
        return unchanged
    sample = _sample(values)
    if not is_asked_for and _bits_per_byte(sample) > _RANDOM_BITS:
        return unchanged
    table = train(sample)
    ratio = _bytes_of(compressed(sample, table)) / _bytes_of(sample)
    fsst = Sized(
        Fsst(table, unchanged.encoding),
        unchanged.num_bytes - size + int(size * ratio) + _TABLE_BYTES,
    )
    return fsst if is_asked_for or fsst.num_bytes < _WORTH * unchanged.num_bytes else unchanged


def _sample(values: Variable) -> Variable:
    """Return strings from all over the page; of longer ones pieces, so that many have a say."""
    first, size = int(values.offsets[0]), _bytes_of(values)
    mean = max(min(size // values.num_values, _PIECE_BYTES), 1)
    count = max(min(_SAMPLE_BYTES, size) // mean, 1)
    places = first + np.arange(count, dtype=np.int64) * size // count
    rows = np.searchsorted(values.offsets, places, "right") - 1
    ends = values.offsets[rows + 1]
    is_short = ends - values.offsets[rows] <= _PIECE_BYTES
    starts = np.where(is_short, values.offsets[rows], places)
    starts = starts[np.append(True, starts[1:] != starts[:-1])]  # they ascend
    rows = np.searchsorted(values.offsets, starts, "right") - 1
    sizes = np.minimum(values.offsets[rows + 1] - starts, _PIECE_BYTES)
    offsets = np.append(0, np.cumsum(sizes))
    data = np.empty(int(offsets[-1]), np.uint8)
    join_bytes(address_of(values.data) + starts, sizes, data)
    return Variable(offsets, data)


def _bits_per_byte(values: Variable) -> float:
    """Return the entropy of single bytes, at most 8."""
    counts = np.bincount(values.data, minlength=1)
    shares = counts[counts > 0] / len(values.data)
    return float(-(shares * np.log2(shares)).sum())
