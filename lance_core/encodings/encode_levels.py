"""Levels of a page -> what its chunks store of them (file format, sections 4.1 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.choose_levels import LEVEL_BITS, choose_levels
from lance_core.encodings.values import FixedWidth
from lance_core.kernels.shred import bound_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.compression import ChunkBuffer, Compression
    from lance_core.encodings.levels import Layers, Levels
    from lance_core.encodings.shred import Leaf
    from lance_core.encodings.version import FileVersion
    from lance_core.proto import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True, eq=False)
class LevelStream:
    """Repetition or definition levels of all chunks, or of a page."""

    encoding: Compression
    buffer: ChunkBuffer

    @classmethod
    def of(
        cls, levels: Levels | None, bounds: NDArray[np.int64], version: FileVersion
    ) -> LevelStream | None:
        """Encode levels ``[bounds[i], bounds[i + 1])`` for chunk ``i``; None stays None."""
        if levels is None:
            return None
        encoding = choose_levels(levels, bounds, version)
        values = FixedWidth(levels.view(np.uint8), LEVEL_BITS, len(levels))
        return cls(encoding, encoding.encode_blocks(values, bounds))


def layer_numbers(layers: Layers) -> list[pb.RepDefLayer.ValueType]:
    """Return the numbers that messages have for layers."""
    return cast("list[pb.RepDefLayer.ValueType]", [int(layer) for layer in layers.layers])


def level_bounds(leaf: Leaf, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the levels of chunks begin.

    Parameters
    ----------
    leaf
        A page with or without levels.
    bounds
        Shape ``(chunks + 1,)``; where the values of chunks begin.

    Returns
    -------
    NDArray[np.int64]
        Shape ``(chunks + 1,)``. The levels of a chunk end with that of its last value: null and
        empty lists behind it belong to the next one, and the last chunk takes all that are left.
    """
    if leaf.repetition is None and leaf.definition is None:
        return np.zeros_like(bounds)
    if leaf.num_levels == leaf.values.num_values or leaf.definition is None:
        return bounds
    of_levels = np.empty_like(bounds)
    bound_levels(leaf.definition, leaf.layers.max_visible, bounds, of_levels)
    return of_levels


def repetition_index(
    repetition: Levels, num_lists: int, bounds: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return rows that end in each chunk, and levels behind the last such row.

    Parameters
    ----------
    repetition, num_lists
        Shape ``(levels,)``, and the level that begins a row.
    bounds
        Shape ``(chunks + 1,)``; as ``level_bounds`` returns.

    Returns
    -------
    NDArray[np.uint64]
        Shape ``(chunks, 2)``.
    """
    begins = repetition == num_lists
    starts = np.flatnonzero(begins)
    first, stop = bounds[:-1], bounds[1:]
    rows_before_stop = np.searchsorted(starts, stop, "left")
    ends = rows_before_stop - np.searchsorted(starts, first, "right")
    # a row ends with the chunk if another one begins right behind, or nothing does
    closes = np.append(begins[stop[:-1]], [True])
    last_start = starts[rows_before_stop - 1]
    partial = np.where(closes, 0, stop - np.maximum(last_start, first))
    return np.column_stack((ends + closes, partial)).astype(np.uint64)
