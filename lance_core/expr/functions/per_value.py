"""Work that Arrow has no function for, or only for constants: once per distinct value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from lance_core.expr.convert import Values

    OnConstants = Callable[..., pa.Array]
    """A first argument that is an array, and Python values, none of them None."""


def per_value(values: pa.Array, compute: Callable[[Any], object], kind: pa.DataType) -> pa.Array:
    """Apply a function to each distinct value; nulls stay."""
    coded = values.dictionary_encode()
    made = pa.array([compute(each) for each in coded.dictionary.to_pylist()], kind)
    return made.take(coded.indices)


def with_constants(
    compute: OnConstants, first: pa.Array, others: Sequence[Values], kind: pa.DataType
) -> pa.Array:
    """Call a function whose other arguments are constants, once per combination of those.

    Parameters
    ----------
    compute
        Called with some values of ``first``, and one value of each of ``others``.
    first, others
        Arguments; where one of ``others`` is null, so is the result.
    kind
        Type of the result.
    """
    if all(isinstance(each, pa.Scalar) for each in others):
        constants = [each.as_py() for each in others]
        if any(each is None for each in constants):
            return pa.nulls(len(first), kind)
        return compute(first, *constants).cast(kind)
    columns = [each for each in others if isinstance(each, pa.Array)]
    coded = [each.dictionary_encode() for each in columns]
    codes = np.zeros(len(first), np.int64)
    for each in coded:
        own = pc.fill_null(each.indices, len(each.dictionary)).to_numpy(zero_copy_only=False)
        codes = np.unique(codes * (len(each.dictionary) + 1) + own, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    made = []
    for rows in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if len(rows) == 0:
            continue
        at = int(rows[0])
        constants = [each if isinstance(each, pa.Scalar) else each[at] for each in others]
        made.append(with_constants(compute, first.take(pa.array(rows)), constants, kind))
    inverse = np.empty(len(first), np.int64)
    inverse[order] = np.arange(len(first))
    return pa.concat_arrays([pa.array([], kind), *made]).take(pa.array(inverse))
