"""How values of fixed width are stored in mini-block chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.bitpacking import InlineBitpacking
from lance_core.encodings.byte_stream_split import ByteStreamSplit
from lance_core.encodings.flat import Flat
from lance_core.encodings.general import Codec, General
from lance_core.encodings.rle import Rle
from lance_core.kernels.bitpacking import BLOCK_ROWS, UNSIGNED
from lance_core.kernels.bitpacking_encode import chunk_widths
from lance_core.kernels.rle_encode import MAX_RUN, count_changes

if TYPE_CHECKING:
    from lance_core.encodings.compression import Compression
    from lance_core.encodings.hints import Hints
    from lance_core.encodings.values import FixedWidth

_SPLIT_BITS = (32, 64)
_SAMPLE_BYTES = 64 << 10
_SAMPLE_CHUNK_BYTES = 4 << 10
_WORTH = 0.9
"""What another form must shrink values to: flat ones are read without decoding."""
_RLE_THRESHOLD = 0.5
_RUN_CHUNK = 2048
CODECS = {"zstd": "zstd", "lz4": "lz4_raw"}


@dataclass(frozen=True, slots=True)
class Sized:
    """An encoding and about how many bytes values take in it."""

    encoding: Compression
    num_bytes: int


def choose_numbers(values: FixedWidth, hints: Hints) -> Sized:
    """Choose among flat values, packed bits and runs, and compress those if that was asked for.

    Parameters
    ----------
    values
        Of any width; only those of 8, 16, 32 or 64 bits have a choice.
    hints
        What the field asks for.
    """
    best = Sized(Flat(values.bits), (values.num_values * values.bits + 7) // 8)
    if hints.compression == "none":
        return best
    if values.bits in UNSIGNED:
        packed = _packed(values)
        if packed.num_bytes < _WORTH * best.num_bytes:
            best = packed
        runs = _runs(values, hints)
        if runs is not None and runs.num_bytes < _WORTH * best.num_bytes:
            best = runs
    if hints.compression in CODECS:
        return _compressed(values, best, hints)
    return best


def codec_of(compression: str, level: int | None) -> Codec:
    """Return the codec that a hint names."""
    return Codec(CODECS[compression], level)


def _packed(values: FixedWidth) -> Sized:
    bounds = np.append(np.arange(0, values.num_values, BLOCK_ROWS), values.num_values)
    widths = np.empty(len(bounds) - 1, np.int64)
    chunk_widths(values.integers(), bounds, widths)
    num_bytes = len(widths) * values.value_bytes + int(widths.sum()) * (BLOCK_ROWS // 8)
    return Sized(InlineBitpacking(values.bits), num_bytes)


def _runs(values: FixedWidth, hints: Hints) -> Sized | None:
    threshold = _RLE_THRESHOLD if hints.rle_threshold is None else hints.rle_threshold
    changes = count_changes(values.integers())
    if changes >= threshold * values.num_values:
        return None
    # long runs are cut, and every chunk begins one
    cut = values.num_values // MAX_RUN + values.num_values // _RUN_CHUNK + 1
    return Sized(Rle(values.bits), (changes + cut) * (values.value_bytes + 1))


def _compressed(values: FixedWidth, best: Sized, hints: Hints) -> Sized:
    """Compress what suits the codec best; leave alone what it makes no smaller."""
    codec = codec_of(hints.compression or "zstd", hints.compression_level)
    inner: list[Compression] = [best.encoding]
    if best.encoding != Flat(values.bits):
        inner.append(Flat(values.bits))
    if values.bits in _SPLIT_BITS and hints.bss != "off":
        split = ByteStreamSplit(values.bits)
        inner = [split] if hints.bss == "on" else [*inner, split]
    candidates = [_sampled(values, General(codec, encoding)) for encoding in inner]
    smallest = min(candidates, key=lambda candidate: candidate.num_bytes)
    return best if smallest.num_bytes >= best.num_bytes else smallest


def _sampled(values: FixedWidth, encoding: Compression) -> Sized:
    """Encode the first part of the values and guess from it how large all will be."""
    count = min(values.num_values, max(_SAMPLE_BYTES // values.value_bytes, 1))
    chunk = max(_SAMPLE_CHUNK_BYTES // values.value_bytes, 1)
    bounds = np.append(np.arange(0, count, min(chunk, BLOCK_ROWS)), count)
    buffers = encoding.encode_chunks(values.slice(0, count), bounds)
    num_bytes = sum(int(buffer.sizes.sum()) for buffer in buffers)
    return Sized(encoding, num_bytes * values.num_values // count)
