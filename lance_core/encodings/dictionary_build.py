"""Dictionaries: distinct values of a page, and which of them each row has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.values import FixedWidth, Variable
from lance_core.kernels.distinct import (
    TOO_MANY,
    fixed_equal_items,
    hash_fixed,
    hash_strings,
    number_hashes,
    strings_equal_items,
)
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

INDEX_BITS = 32
_SAMPLED = 16384
_SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    """``items`` in the order of their first occurrence; ``indices`` are 32-bit positions there."""

    indices: FixedWidth
    items: FixedWidth | Variable


def build_dictionary(values: FixedWidth | Variable, max_items: int) -> Dictionary | None:
    """Return the dictionary of values, or None if it has more than ``max_items``."""
    hashes = _hashes(values, np.arange(values.num_values, dtype=np.int64))
    indices = np.empty(values.num_values, np.uint32)
    firsts = np.empty(max_items, np.int64)
    count = number_hashes(hashes, indices, firsts)
    if count == TOO_MANY or not _are_items(values, indices, firsts):
        return None
    items = values.take(firsts[:count])
    return Dictionary(FixedWidth(indices.view(np.uint8), INDEX_BITS, len(indices)), items)


def fewest_items(values: FixedWidth | Variable) -> int | None:
    """Guess from a sample how many distinct values there are.

    Returns
    -------
    int | None
        A number that the distinct values hardly fall short of; None if nearly all are distinct.

    Notes
    -----
    The sample is random, so that rows that repeat soon count as much as those that repeat late. If
    all values occurred twice, ``s`` of ``n`` values would hold about ``s**2 / 2n`` that were there
    before; fewer mean that over half of the values are distinct.
    """
    num_values = values.num_values
    sample = _sample(num_values)
    # nulls are alike and would pass for values that repeat
    positions = sample if values.validity is None else sample[values.validity[sample]]
    size = len(positions)
    hashes = _hashes(values, positions)
    found = number_hashes(hashes, np.empty(size, np.uint32), np.empty(size, np.int64))
    return None if (size - found) * 2 < size * size / num_values else found


def _sample(num_values: int) -> NDArray[np.int64]:
    """Return ascending positions, the same ones each time: files must not depend on chance."""
    if num_values <= _SAMPLED:
        return np.arange(num_values, dtype=np.int64)
    return np.unique(np.random.default_rng(_SEED).integers(0, num_values, _SAMPLED))


def _hashes(values: FixedWidth | Variable, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
    hashes = np.empty(len(positions), np.uint64)
    base = address_of(values.data)
    if isinstance(values, Variable):
        hash_strings(base, values.offsets, positions, hashes)
    else:
        hash_fixed(base, values.value_bytes, positions, hashes)
    return hashes


def _are_items(
    values: FixedWidth | Variable, indices: NDArray[np.uint32], firsts: NDArray[np.int64]
) -> bool:
    base = address_of(values.data)
    if isinstance(values, Variable):
        return strings_equal_items(base, values.offsets, indices, firsts)
    return fixed_equal_items(base, values.value_bytes, indices, firsts)
