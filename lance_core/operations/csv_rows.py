"""Rows of comma- or tab-separated values.

Text is kept as it is written: only a value that is empty and has no quotes is null. In columns of
numbers, dates and the like, words such as ``NA`` and ``NULL`` are null too, but ``NaN`` is none.
Values in quotes may have line breaks in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_SAMPLE_BYTES = 1 << 20
_BLOCK_BYTES = 16 << 20  # no row is longer
_NULL_TEXT = ("",)
_NULL_NUMBERS = tuple(
    word for word in pc.ConvertOptions().null_values if word.lower().lstrip("-") != "nan"
)
_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_dictionary,
)


def csv_schema(
    open_stream: Callable[[], pa.NativeFile], types: Mapping[str, pa.DataType], delimiter: str
) -> pa.Schema:
    """Return the columns that the first line names.

    Parameters
    ----------
    open_stream
        Opens the file.
    types
        Types of columns that are known; those of others are guessed from the beginning, and are
        ``null`` where columns are empty there.
    delimiter
        What stands between values.

    Raises
    ------
    pyarrow.ArrowException, OSError
        It cannot be read so.
    """
    convert = pc.ConvertOptions(column_types=dict(types), null_values=_NULL_NUMBERS)
    try:
        return _open(open_stream(), delimiter, convert, None, _SAMPLE_BYTES).schema
    except pa.ArrowInvalid:  # a row may be longer
        return _open(open_stream(), delimiter, convert, None).schema


def csv_batches(
    open_stream: Callable[[], pa.NativeFile],
    types: Mapping[str, pa.DataType],
    delimiter: str,
    column_names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file.

    Text and other columns have other nulls, so a file that has both is read twice, side by side.

    Parameters
    ----------
    open_stream
        Opens the file.
    types
        Columns to read; others are left out, unless the file has none of these.
    delimiter
        What stands between values.
    column_names
        Of a part of a file, whose first line is a row; None = the first line names them.

    Raises
    ------
    pyarrow.ArrowException, OSError
        It cannot be read so.
    """
    names = column_names
    if names is None:
        names = csv_schema(open_stream, types, delimiter).names
    wanted = [name for name in names if name in types] or list(names)
    texts = [name for name in wanted if name in types and _is_text(types[name])]
    others = [name for name in wanted if name not in texts]
    readers = [
        _open(open_stream(), delimiter, _converting(part, types, nulls), column_names)
        for part, nulls in ((texts, _NULL_TEXT), (others, _NULL_NUMBERS))
        if len(part) > 0
    ]
    for parts in zip(*readers, strict=True):
        found = {name: part.column(name) for part in parts for name in part.schema.names}
        yield pa.RecordBatch.from_arrays([found[name] for name in wanted], names=wanted)


def _converting(
    columns: list[str], types: Mapping[str, pa.DataType], nulls: Sequence[str]
) -> pc.ConvertOptions:
    return pc.ConvertOptions(
        include_columns=columns,
        column_types={name: types[name] for name in columns if name in types},
        null_values=nulls,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _open(
    stream: pa.NativeFile,
    delimiter: str,
    convert: pc.ConvertOptions,
    column_names: Sequence[str] | None,
    block_bytes: int = _BLOCK_BYTES,
) -> pc.CSVStreamingReader:
    return pc.open_csv(
        stream,
        read_options=pc.ReadOptions(
            use_threads=False, block_size=block_bytes, column_names=column_names
        ),
        parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=convert,
    )


def _is_text(kind: pa.DataType) -> bool:
    return any(holds(kind) for holds in _TEXTS)
