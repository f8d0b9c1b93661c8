"""Leaves -> full-zip pages: level and value of each entry side by side (file format, 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.encode_levels import layer_numbers
from lance_core.encodings.levels import row_starts
from lance_core.encodings.values import FixedWidth, variable
from lance_core.kernels.full_zip_encode import zip_entries
from lance_core.kernels.memory import address_of
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.compression import Compression
    from lance_core.encodings.levels import Levels
    from lance_core.encodings.shred import Leaf
    from lance_core.encodings.values import Values

    Buffers = tuple[NDArray[np.uint8], ...]

_CONTROL_BYTES = (0, 1, 2, 4)
_INDEX_BYTES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, eq=False)
class _Bodies:
    """What follows the control words; exactly one of ``value_bytes`` and ``length_bytes`` is 0."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    value_bytes: int
    length_bytes: int

    @classmethod
    def of(cls, zipped: Values, length_bits: int) -> _Bodies:
        """Lay out encoded values; ``length_bits`` counts for those of variable width."""
        if isinstance(zipped, FixedWidth):
            return cls(zipped.data, np.zeros(1, np.int64), zipped.value_bytes, 0)
        strings = variable(zipped)
        return cls(strings.data, strings.offsets, 0, length_bits // 8)

    def most_bytes(self, num_entries: int, control_bytes: int) -> int:
        """Return the most bytes that all entries may take: nulls have no length."""
        return num_entries * (control_bytes + self.length_bytes) + len(self.data)


def encode_full_zip(
    leaf: Leaf, values: Values, encoding: Compression, length_bits: int
) -> tuple[Buffers, pb.PageLayout]:
    """Encode a page as zipped entries.

    Parameters
    ----------
    leaf
        Levels and layers of the page.
    values, encoding
        The visible values and how each is stored.
    length_bits
        Width of the lengths before values of variable width, 32 or 64.
    """
    bodies = _Bodies.of(encoding.encode_zipped(values), length_bits)
    bits_rep, bits_def = _bits(leaf.repetition), _bits(leaf.definition)
    layout = pb.FullZipLayout(
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=leaf.num_levels,
        num_visible_items=values.num_values,
        value_compression=encoding.message(),
        layers=layer_numbers(leaf.layers),
    )
    if bodies.length_bytes > 0:
        layout.bits_per_offset = length_bits
    else:
        layout.bits_per_value = bodies.value_bytes * 8
    message = pb.PageLayout(full_zip_layout=layout)
    if bodies.length_bytes == 0 and bits_rep + bits_def == 0:
        return (bodies.data,), message
    entries, starts = _zip(leaf, bodies, bits_rep, bits_def)
    if bodies.length_bytes == 0 and leaf.repetition is None:
        return (entries,), message
    return (entries, _index(leaf, starts)), message


def _bits(levels: Levels | None) -> int:
    """Return the bits of a level; one where all are 0, since pylance counts on a stream.

    (Layers may be nullable without a null: its reader then takes a page without definition levels
    for one without these layers, and miscounts if another page has some.)
    """
    return 0 if levels is None else max(int(levels.max(initial=0)).bit_length(), 1)


def _zip(
    leaf: Leaf, bodies: _Bodies, bits_rep: int, bits_def: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the entries and where each of them begins."""
    controls = np.zeros(leaf.num_levels, np.uint32)
    if leaf.repetition is not None:
        controls |= leaf.repetition.astype(np.uint32) << np.uint32(bits_def)
    if leaf.definition is not None:
        controls |= leaf.definition
    control_bytes = next(width for width in _CONTROL_BYTES if bits_rep + bits_def <= width * 8)
    out = np.empty(bodies.most_bytes(leaf.num_levels, control_bytes), np.uint8)
    starts = np.empty(leaf.num_levels + 1, np.int64)
    zip_entries(
        controls,
        control_bytes,
        bits_def,
        leaf.layers.max_visible,
        address_of(bodies.data),
        bodies.value_bytes,
        bodies.length_bytes,
        bodies.offsets,
        out,
        starts,
    )
    return out[: int(starts[-1])], starts


def _index(leaf: Leaf, starts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return where rows begin, and where the last one ends, in as few bytes as that takes."""
    if leaf.repetition is not None:
        rows = row_starts(leaf.repetition, leaf.layers)
        starts = np.append(starts[rows], starts[-1])
    width = next(width for width in _INDEX_BYTES if int(starts[-1]) < 1 << (8 * width))
    return starts.astype(f"<u{width}").view(np.uint8)
