"""Arrow values as JSON (rest-api section 4.2).

Works column by column: one converter per Arrow type turns an array into a list of values that
orjson writes; rows are put together last.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.encodings.arrow_arrays import PlainValues, as_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.query.query_result import AnswerRows

Converter = Callable[[pa.Array], Sequence[object]]

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY
_DAY_S = 24 * 60 * 60
_YEARS_S = (-719_162 * _DAY_S, 2_932_897 * _DAY_S)
"""The first moments of the years 1 and 10000, in seconds since 1970."""
_UNIT_S = {
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}


def encode_rows(batch: pa.RecordBatch | pa.Table | AnswerRows) -> bytes:
    """Return the rows as JSON objects separated by commas, without brackets around them.

    Numbers have the shortest text that reads back to the same value of their width; NaN and
    infinities become null. Dates and timestamps beyond the years 1 to 9999, and times that are no
    time of a day, have no text that clients could read: the stored integer, in the column's unit,
    stands in their place.
    """
    names = batch.schema.names
    columns = [_column(column) for column in batch.columns]
    # All are as long as the batch: checking that for each row would cost as much as the rows.
    rows = [dict(zip(names, row)) for row in zip(*columns)]  # noqa: B905
    if len(columns) == 0:
        rows = [{} for _ in range(batch.num_rows)]
    return orjson.dumps(rows, option=_OPTIONS)[1:-1]


def _column(column: pa.Array | pa.ChunkedArray | PlainValues) -> Sequence[object]:
    kind = _NUMPY_KINDS.get(column.type.id) if isinstance(column, PlainValues) else None
    if kind is None:
        return _values(_whole(as_array(column)))
    return _ready(column.data.view(kind))


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _values(array: pa.Array) -> Sequence[object]:
    """Return the values of an array, nulls as None, ready for orjson."""
    kind: int = array.type.id
    convert = _known_converters.get(kind)
    if convert is None:
        convert = _known_converters[kind] = _converter(array.type)
    return convert(array)


def _converter(kind: pa.DataType) -> Converter:
    return next((convert for matches, convert in _CONVERTERS if matches(kind)), _plain)


def _plain(array: pa.Array) -> Sequence[object]:
    values: list[object] = array.to_pylist()
    return values


def _integers(array: pa.Array) -> Sequence[object]:
    if array.null_count > 0:
        return _plain(array)
    return _ready(_numbers(array))


def _floats(array: pa.Array) -> Sequence[object]:
    """Keep numpy's own scalars: orjson prints a float32 with the digits a float32 needs."""
    if array.type == pa.float16():
        return [None if value is None else _half(value) for value in array.to_pylist()]
    if array.null_count > 0:
        filled = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)
        return _with_nulls(array, list(filled))
    return _ready(_numbers(array))


def _ready(numbers: NDArray[np.generic]) -> list[object]:
    """Return numbers ready for orjson, which takes floats as numpy's own and integers not."""
    return list(numbers) if numbers.dtype.kind == "f" else numbers.tolist()


def _numbers(array: pa.Array) -> NDArray[np.generic]:
    """View numbers, none of them null; ``to_numpy`` lets go of the GIL four times."""
    values = array.buffers()[1]
    if values is None:  # an empty array may have none
        return np.empty(0)
    kind = _NUMPY_KINDS[array.type.id]
    return np.frombuffer(values, kind, len(array), array.offset * kind.itemsize)


def _half(value: float) -> float:
    """Return the double whose shortest text is the shortest text of the half float."""
    return float(str(np.float16(value)))


def _dates(array: pa.Array) -> Sequence[object]:
    unit_s = Fraction(_DAY_S) if pa.types.is_date32(array.type) else _UNIT_S["ms"]
    return _text_or_integers(array, _text(array), _YEARS_S, unit_s)


def _times(array: pa.Array) -> Sequence[object]:
    return _text_or_integers(array, _text(array), (0, _DAY_S), _UNIT_S[array.type.unit])


def _timestamps(array: pa.Array) -> Sequence[object]:
    suffix = "" if array.type.tz is None else "Z"
    in_utc = array.cast(pa.timestamp(array.type.unit))
    texts = [None if text is None else text.replace(" ", "T", 1) + suffix for text in _text(in_utc)]
    return _text_or_integers(array, texts, _YEARS_S, _UNIT_S[array.type.unit])


def _text(array: pa.Array) -> list[str | None]:
    values: list[str | None] = array.cast(pa.string()).to_pylist()
    return values


def _text_or_integers(
    array: pa.Array,
    texts: Sequence[str | None],
    bounds_s: tuple[int, int],
    unit_s: Fraction,
) -> Sequence[object]:
    """Return the texts, with the stored integers in place of those out of bounds.

    Parameters
    ----------
    array
        Dates, times or timestamps.
    texts
        Their texts.
    bounds_s
        Where the texts begin and end to be readable, in seconds; the end is outside.
    unit_s
        Length of one unit of ``array``, in seconds.
    """
    bits = pa.int32() if array.type.bit_width == pa.int32().bit_width else pa.int64()
    stored = array.cast(bits)
    begin, end = (int(bound / unit_s) for bound in bounds_s)
    span = pc.min_max(stored).as_py()
    if span["min"] is None or (begin <= span["min"] and span["max"] < end):
        return texts
    return [
        text if value is None or begin <= value < end else value
        for text, value in zip(texts, stored.to_pylist(), strict=True)
    ]


def _decimals(array: pa.Array) -> Sequence[object]:
    return [None if value is None else format(value, "f") for value in array.to_pylist()]


def _durations(array: pa.Array) -> Sequence[object]:
    values: list[object] = array.cast(pa.int64()).to_pylist()
    return values


def _binaries(array: pa.Array) -> Sequence[object]:
    return [
        None if value is None else base64.b64encode(value).decode() for value in array.to_pylist()
    ]


def _fixed_size_lists(array: pa.Array) -> Sequence[object]:
    width = array.type.list_size
    children = array.values.slice(array.offset * width, len(array) * width)
    if pa.types.is_float32(children.type) or pa.types.is_float64(children.type):
        flat = pc.fill_null(children, float("nan")).to_numpy(zero_copy_only=False)
        return _with_nulls(array, list(flat.reshape(len(array), width)))
    items = _values(children)
    return _with_nulls(array, [items[i * width : (i + 1) * width] for i in range(len(array))])


def _lists(array: pa.Array) -> Sequence[object]:
    items = _values(array.values)
    bounds = array.offsets.to_pylist()
    return _with_nulls(array, [items[start:end] for start, end in pairwise(bounds)])


def _maps(array: pa.Array) -> Sequence[object]:
    keys, values = _values(array.keys), _values(array.items)
    pairs = [list(pair) for pair in zip(keys, values, strict=True)]
    bounds = array.offsets.to_pylist()
    return _with_nulls(array, [pairs[start:end] for start, end in pairwise(bounds)])


def _structs(array: pa.Array) -> Sequence[object]:
    names = [field.name for field in array.type]
    columns = [_values(child) for child in array.flatten()]
    if len(columns) == 0:
        return _with_nulls(array, [{} for _ in range(len(array))])
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return _with_nulls(array, rows)


def _dictionaries(array: pa.Array) -> Sequence[object]:
    return _values(array.dictionary_decode())


def _extensions(array: pa.Array) -> Sequence[object]:
    return _values(array.storage)


def _with_nulls(array: pa.Array, values: Sequence[object]) -> Sequence[object]:
    if array.null_count == 0:
        return values
    valid = array.is_valid().to_pylist()
    return [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


_CONVERTERS: tuple[tuple[Callable[[pa.DataType], bool], Converter], ...] = (
    (pa.types.is_floating, _floats),
    (pa.types.is_integer, _integers),
    (pa.types.is_fixed_size_list, _fixed_size_lists),
    (_is_binary, _binaries),
    (pa.types.is_date, _dates),
    (pa.types.is_time, _times),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_duration, _durations),
    (pa.types.is_map, _maps),
    (_is_list, _lists),
    (pa.types.is_struct, _structs),
    (pa.types.is_dictionary, _dictionaries),
    (_is_extension, _extensions),
)
_NUMPY_KINDS: dict[int, np.dtype[np.generic]] = {
    kind.id: np.dtype(kind.to_pandas_dtype())
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64()),
    )
}
_known_converters: dict[int, Converter] = {}
