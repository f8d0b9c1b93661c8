"""In which order rows are returned: by columns, each up or down, nulls first or last.

Floats are in total order: -NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN. Texts and binaries are ordered
by their bytes, false comes before true, and rows that are equal in all columns stay as they lie in
the table. All that but the last is what pylance 14.0.2 does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError, TypeMismatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SIGNED = {pa.float16(): pa.int16(), pa.float32(): pa.int32(), pa.float64(): pa.int64()}
_TEXTS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@dataclass(frozen=True, slots=True)
class OrderBy:
    """One column to order rows by.

    Parameters
    ----------
    column
        Name of the column, or path of a part of a nested one.
    ascending
        Whether small values come first.
    nulls_first
        Whether rows without a value come before all others, whichever way values are ordered.
    """

    column: str
    ascending: bool = True
    nulls_first: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InvalidRequestError(f"order_by names {self.column!r}; give a column's name")
        for name in ("ascending", "nulls_first"):
            if not isinstance(getattr(self, name), bool):
                given = getattr(self, name)
                raise InvalidRequestError(f"{name} is {given!r}; it must be True or False")

    def __str__(self) -> str:
        direction = "ascending" if self.ascending else "descending"
        return f"{self.column} {direction} nulls {'first' if self.nulls_first else 'last'}"


def require_ordered(order: OrderBy, kind: pa.DataType) -> None:
    """Refuse columns whose values have no order."""
    if _is_nested(kind):
        raise TypeMismatchError(
            f'order_by: column "{order.column}" holds {kind}, whose values have no order; name a'
            " column of numbers, texts, binaries, booleans or times, or such a part of a struct"
        )


def sortable(values: pa.Array) -> pa.Array:
    """Return values of a type that Arrow sorts, in the order of those given.

    Parameters
    ----------
    values
        Any type that `require_ordered` lets pass; nulls stay nulls.
    """
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    kind = values.type
    if pa.types.is_dictionary(kind):
        return sortable(values.dictionary_decode())
    if kind in _SIGNED:
        return _as_ordered_integers(values)
    if kind in _TEXTS:
        return values.cast(_TEXTS[kind])
    if pa.types.is_null(kind):
        return values.cast(pa.uint8())
    return values


def sorted_positions(keys: Sequence[pa.Array], order: Sequence[OrderBy]) -> NDArray[np.int64]:
    """Return the positions of rows in their order, shape ``(n,)``; equal rows stay as they are.

    Parameters
    ----------
    keys
        One array of n values per column of the order, from `sortable`.
    """
    columns: dict[str, pa.Array] = {}
    sort_keys: list[tuple[str, str]] = []
    for place, (each, values) in enumerate(zip(order, keys, strict=True)):
        if values.null_count > 0:
            # Arrow places nulls of all keys alike, so that they are a key of their own.
            columns[f"null{place}"] = values.is_null().cast(pa.uint8())
            sort_keys.append((f"null{place}", "descending" if each.nulls_first else "ascending"))
        columns[f"value{place}"] = values
        sort_keys.append((f"value{place}", "ascending" if each.ascending else "descending"))
    found = pc.sort_indices(pa.table(columns), sort_keys=sort_keys)
    positions: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return positions


def may_precede(values: pa.Array, last: pa.Scalar, order: OrderBy) -> pa.BooleanArray:
    """Tell which values do not come after one of the same column; no nulls."""
    if not last.is_valid:
        return values.is_null() if order.nulls_first else pa.array(np.ones(len(values), np.bool_))
    compare = pc.less_equal if order.ascending else pc.greater_equal
    return pc.fill_null(compare(values, last), fill_value=order.nulls_first)


def _as_ordered_integers(values: pa.Array) -> pa.Array:
    """Return integers that are ordered as the bits of floats are in total order."""
    kind = _SIGNED[values.type]
    if len(values) == 0:
        return pa.array([], kind)
    bits = np.frombuffer(values.buffers()[1], kind.to_pandas_dtype())
    bits = bits[values.offset : values.offset + len(values)]
    turned = bits ^ ((bits >> (kind.bit_width - 1)) & np.iinfo(bits.dtype).max)
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count > 0 else None
    return pa.array(turned, kind, mask=nulls)


def _is_nested(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _is_nested(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _is_nested(kind.value_type)
    return bool(pa.types.is_nested(kind))
