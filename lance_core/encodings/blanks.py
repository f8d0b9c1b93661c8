"""Values with zeros under nulls, so that a file does not depend on what an array held there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.values import (
    AllNull,
    FixedSizeLists,
    FixedWidth,
    Indexed,
    Packed,
    Variable,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.values import Validity, Values


def blanked(values: Values, valid: NDArray[np.bool_]) -> Values:
    """Return values that are valid where ``valid`` says so, and blank elsewhere.

    Numbers become zero, strings empty, positions in dictionaries 0; lists get valid zeros as
    elements and packed rows blank children.

    Parameters
    ----------
    values
        Their own ``validity`` is replaced by ``valid``.
    valid
        Shape ``(n,)``.
    """
    if isinstance(values, AllNull):
        return values
    if bool(valid.all()):
        return replace(values, validity=None)
    return replace(_blank(values, valid), validity=valid)


def _blank(
    values: FixedWidth | Variable | FixedSizeLists | Indexed | Packed, valid: NDArray[np.bool_]
) -> FixedWidth | Variable | FixedSizeLists | Indexed | Packed:
    if isinstance(values, FixedWidth):
        return _numbers(values, valid)
    if isinstance(values, Variable):
        return _strings(values, valid)
    if isinstance(values, Indexed):
        return replace(values, indices=np.where(valid, values.indices, 0))
    if isinstance(values, FixedSizeLists):
        return replace(values, items=_masked(values.items, np.repeat(valid, values.dimension)))
    return replace(values, children=tuple(_masked(child, valid) for child in values.children))


def _masked(values: Values, valid: NDArray[np.bool_]) -> Values:
    """Blank values below something null and call them valid: nobody looks at them."""
    if isinstance(values, AllNull):
        return values
    return replace(_blank(values, valid), validity=_or_valid(values.validity, valid))


def _or_valid(validity: Validity, valid: NDArray[np.bool_]) -> Validity:
    if validity is None:
        return None
    either = validity | ~valid
    return None if bool(either.all()) else either


def _numbers(values: FixedWidth, valid: NDArray[np.bool_]) -> FixedWidth:
    if values.value_bytes in {1, 2, 4, 8}:
        numbers = values.integers() * valid  # a product is faster than a choice
        return replace(values, data=numbers.view(np.uint8))
    table = values.data.reshape(values.num_values, values.value_bytes).copy()
    table[~valid] = 0
    return replace(values, data=table.reshape(-1))


def _strings(values: Variable, valid: NDArray[np.bool_]) -> Variable:
    sizes = np.diff(values.offsets)
    if not bool((sizes[~valid] > 0).any()):
        return values
    kept = values.take(np.flatnonzero(valid))
    offsets = np.zeros(len(values.offsets), np.int64)
    np.cumsum(np.where(valid, sizes, 0), out=offsets[1:])
    return Variable(offsets, kept.data)
