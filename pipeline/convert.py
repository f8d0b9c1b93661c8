"""Columns as Spark and files have them -> columns as the dataset has them; above all, vectors.

Spark knows neither lists of a fixed size nor half floats, so vectors come as lists of floats or as
bytes, and lists have another name for their elements. Nothing here loops over rows.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.schema.from_arrow import storage_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Where = Callable[[int], str]
    """Says what row of what file a row of a batch is."""

_KEPT_ELEMENTS = (pa.float16(), pa.float32(), pa.uint8(), pa.int8())
_BITS_OF_BYTE = 8


class OnBadVector(StrEnum):
    """What becomes of rows whose vector has another length than all others, or holds a null."""

    ERROR = "error"
    NULL = "null"
    DROP = "drop"


class Converter:
    """Turns batches of one source into batches of the schema that the dataset is given.

    Parameters
    ----------
    aim
        Columns to make. Those that a batch lacks become null.
    on_bad_vector
        What becomes of bad vectors. Vectors that are null stay so, and are not bad.

    Attributes
    ----------
    num_bad
        Bad vectors so far.
    num_dropped
        Rows left out so far.
    """

    def __init__(self, aim: pa.Schema, on_bad_vector: OnBadVector = OnBadVector.ERROR) -> None:
        self._aim = aim
        self._on_bad = on_bad_vector
        self.num_bad = 0
        self.num_dropped = 0

    def convert(self, batch: pa.RecordBatch, where: Where) -> pa.RecordBatch:
        """Convert one batch.

        Parameters
        ----------
        batch
            Some rows; columns beyond those of the aim are left out.
        where
            For errors.

        Raises
        ------
        InvalidRequestError
            A vector is bad, and is not to be null or left out.
        TypeMismatchError
            A value does not fit the type of its column.
        """
        arrays = []
        dropped = np.zeros(batch.num_rows, np.bool_)
        for field in self._aim:
            index = batch.schema.get_field_index(field.name)
            if index < 0:
                arrays.append(pa.nulls(batch.num_rows, field.type))
                continue
            array = batch.column(index)
            if is_vector(field.type) and array.type != field.type:
                array, bad = to_vectors(array, field)
                self._judge(bad, array, field, where)
                dropped |= bad
            arrays.append(_fitted(array, field, where))
        made = pa.RecordBatch.from_arrays(arrays, schema=self._aim)
        if self._on_bad is OnBadVector.DROP and dropped.any():
            self.num_dropped += int(np.count_nonzero(dropped))
            made = made.filter(pa.array(~dropped))
        return made

    def _judge(
        self, bad: NDArray[np.bool_], array: pa.Array, field: pa.Field, where: Where
    ) -> None:
        if not bad.any():
            return
        self.num_bad += int(np.count_nonzero(bad))
        if self._on_bad is OnBadVector.ERROR:
            raise InvalidRequestError(
                f'{where(int(np.argmax(bad)))}, column "{field.name}": is no vector of'
                f" {array.type.list_size} numbers; mend it, or have such rows made null or dropped"
                " by --on-bad-vector"
            )
        if self._on_bad is OnBadVector.NULL and not field.nullable:
            raise InvalidRequestError(
                f'{where(int(np.argmax(bad)))}, column "{field.name}": a bad vector cannot be made'
                " null, for the column may hold none; drop such rows by --on-bad-vector drop"
            )


def is_vector(kind: pa.DataType) -> bool:
    """Tell whether a column of the type holds vectors."""
    return bool(pa.types.is_fixed_size_list(kind))


def vector_field(field: pa.Field, dimension: int) -> pa.Field:
    """Return the field of vectors that a column of lists or bytes becomes.

    Elements are float32, but where lists have elements of float16 or of one byte.

    Raises
    ------
    TypeMismatchError
        The column can hold no vectors.
    """
    kind = storage_type(field.type)
    element = pa.float32()
    if _is_list(kind):
        if not (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)):
            raise TypeMismatchError(f'column "{field.name}" is {kind}, which holds no numbers')
        element = kind.value_type if kind.value_type in _KEPT_ELEMENTS else element
    elif not _is_bytes(kind):
        raise TypeMismatchError(
            f'column "{field.name}" is {kind}; vectors come as lists of numbers, or as bytes of'
            " little-endian float32"
        )
    made = pa.list_(pa.field("item", element), dimension)
    return pa.field(field.name, made, field.nullable, field.metadata)


def dimension_of(array: pa.Array, itemsize: int = 4) -> int | None:
    """Return the dimension of the first vector in a column, None if all are null."""
    kind = array.type
    if is_vector(kind):
        size: int = kind.list_size
        return size
    if pa.types.is_fixed_size_binary(kind):
        width: int = kind.byte_width
        return width // itemsize
    is_list = _is_list(kind)
    lengths = array.value_lengths() if is_list else pc.binary_length(array.cast(pa.large_binary()))
    known = lengths.drop_null()
    if len(known) == 0:
        return None
    length: int = known[0].as_py()
    return length if is_list else length // itemsize


def to_vectors(array: pa.Array, field: pa.Field) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Turn lists or bytes into vectors.

    Parameters
    ----------
    array
        Lists of any kind of numbers, or bytes of little-endian numbers of the vectors' type.
    field
        Of the vectors.

    Returns
    -------
    tuple[pa.Array, NDArray[np.bool_]]
        The vectors, null where they are null or bad; and shape ``(n,)``, which are bad: of another
        length, or with a null among the numbers. Nothing is copied where none is null or bad and
        the numbers have the right type.

    Raises
    ------
    TypeMismatchError
        The column can hold no vectors.
    """
    kind = field.type
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if _is_list(array.type) or is_vector(array.type):
        return _of_lists(array, kind)
    if _is_bytes(array.type):
        return _of_bytes(array, kind)
    raise TypeMismatchError(f'column "{field.name}" is {array.type}, which holds no vectors')


def _of_lists(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    lengths = np.asarray(array.value_lengths().fill_null(kind.list_size))
    valid = _validity(array)
    fine = valid & (lengths == kind.list_size)
    whole = array if fine.all() else array.filter(pa.array(fine))
    values = whole.flatten()
    if values.null_count > 0:
        has_null = np.asarray(values.is_null()).reshape(-1, kind.list_size).any(axis=1)
        places = np.flatnonzero(fine)
        fine[places[has_null]] = False
        values = array.filter(pa.array(fine)).flatten()
    return _with_nulls(values, kind, fine), valid & ~fine


def _of_bytes(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    width = kind.list_size * (kind.value_type.bit_width // _BITS_OF_BYTE)
    plain = array.cast(pa.large_binary())
    valid = _validity(plain)
    fine = valid & (np.asarray(pc.binary_length(plain).fill_null(0)) == width)
    plain = plain if fine.all() else plain.filter(pa.array(fine))
    _, offsets_buffer, data = plain.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    count = len(plain) * kind.list_size
    values = np.empty(count, kind.value_type.to_pandas_dtype())
    if count > 0:  # a copy, since bytes may begin anywhere and numbers may not
        start = int(offsets[0])
        raw = np.frombuffer(data, np.uint8)[start : start + values.nbytes]
        values.view(np.uint8)[:] = raw
    return _with_nulls(pa.array(values, kind.value_type), kind, fine), valid & ~fine


def _with_nulls(values: pa.Array, kind: pa.DataType, fine: NDArray[np.bool_]) -> pa.Array:
    """Make vectors of the numbers of those that are fine, and nulls between them."""
    if values.type != kind.value_type:
        values = values.cast(kind.value_type, safe=False)  # doubles become float32
    vectors = pa.FixedSizeListArray.from_arrays(values, type=kind)
    if fine.all():
        return vectors
    places = np.cumsum(fine) - 1
    return vectors.take(pa.array(places, mask=~fine))


def _validity(array: pa.Array) -> NDArray[np.bool_]:
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return np.array(array.is_valid())


def _fitted(array: pa.Array, field: pa.Field, where: Where) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        if isinstance(field.type, pa.BaseExtensionType):
            return field.type.wrap_array(array.cast(storage_type(field.type)))
        if pa.types.is_string(array.type) and pa.types.is_time(field.type):
            return _times(array, field.type)
        return array.cast(field.type)
    except (pa.ArrowException, ValueError) as error:
        raise TypeMismatchError(f'{where(0)} and after, column "{field.name}": {error}') from error


def _times(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the times of a day that texts spell; Arrow reads them as part of a date only.

    Examples
    --------
    >>> _times(pa.array(["12:30:00.5", None]), pa.time32("ms"))[0].as_py()
    datetime.time(12, 30, 0, 500000)
    """
    moments = pc.binary_join_element_wise(pa.scalar("1970-01-01"), array, pa.scalar(" "))
    return moments.cast(pa.timestamp(kind.unit)).cast(kind)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )
