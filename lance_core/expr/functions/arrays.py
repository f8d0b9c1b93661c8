"""Functions of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.expr.compare import compare_bits
from lance_core.expr.functions.signature import (
    Function,
    always,
    any_list,
    takes,
    takes_list_and_item,
    takes_two_lists,
)
from lance_core.expr.lists import as_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.expr.convert import Values


def _owners(given: pa.Array) -> NDArray[np.int64]:
    """Return the row of each item, as `flatten` lists them: not those of null."""
    lengths = pc.fill_null(pc.list_value_length(given), 0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(given)), lengths)


def _with_nulls(found: NDArray[np.bool_], *given: Values) -> pa.Array:
    """Return truth values, null where an argument is."""
    array = pa.array(found)
    for each in given:
        array = pc.if_else(pc.is_valid(each), array, pa.scalar(None, pa.bool_()))
    return array


def _has(given: pa.Array, others: Sequence[Values]) -> pa.Array:
    (asked,) = others
    owners = _owners(given)
    wanted = asked.take(pa.array(owners)) if isinstance(asked, pa.Array) else asked
    equal = pc.fill_null(compare_bits("=", given.flatten(), wanted), fill_value=False)
    rows = owners[equal.to_numpy(zero_copy_only=False)]
    found = np.zeros(len(given), bool)
    found[rows] = True
    return _with_nulls(found, given, asked)


def _pairs(given: pa.Array, asked: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and value as one number, for each item of two columns of lists, sorted.

    Nulls are a value as others are.
    """
    both = pa.concat_arrays([given.flatten(), asked.flatten()])  # of one type
    if pa.types.is_float16(both.type):
        both = both.cast(pa.float32())
    codes = both.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    owners = np.concatenate([_owners(given), _owners(asked)])
    pairs = owners * (len(both) + 1) + codes.astype(np.int64)
    first = len(given.flatten())
    return np.unique(pairs[:first]), np.unique(pairs[first:])


def _share(given: pa.Array, others: Sequence[Values], *, needs_all: bool) -> pa.Array:
    asked = as_array(others[0], len(given))
    own, wanted = _pairs(given, asked)
    size = len(given.flatten()) + len(asked.flatten()) + 1
    is_there = np.isin(wanted, own, assume_unique=True)
    found = np.full(len(given), needs_all)
    found[(wanted[is_there != needs_all]) // size] = not needs_all
    return _with_nulls(found, given, asked)


def _has_any(given: pa.Array, others: Sequence[Values]) -> pa.Array:
    return _share(given, others, needs_all=False)


def _has_all(given: pa.Array, others: Sequence[Values]) -> pa.Array:
    return _share(given, others, needs_all=True)


_TRUTH = always(pa.bool_())
_LENGTH = (
    "(list)",
    takes(any_list),
    always(pa.uint64()),
    lambda given, _: pc.list_value_length(given),
)
HAS = Function("array_has", "(list, item)", takes_list_and_item, _TRUTH, _has)
"""Whether a list has an item."""

FUNCTIONS = (
    HAS,
    Function("array_has_any", "(list, list)", takes_two_lists, _TRUTH, _has_any),
    Function("array_has_all", "(list, list)", takes_two_lists, _TRUTH, _has_all),
    *(Function(name, *_LENGTH) for name in ("array_length", "cardinality")),
)
"""Functions of this module."""
