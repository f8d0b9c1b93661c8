"""Rows of files of comma- or tab-separated values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class CsvFile:
    """A file whose first line names the columns.

    Parameters
    ----------
    path
        The file, which may be compressed.
    types
        Types of columns that are known already; those of others are guessed from the beginning of
        the file, and columns that are empty there are taken for text.
    delimiter
        What stands between values.

    Raises
    ------
    InvalidRequestError
        It cannot be read so, or text is not in UTF-8.
    """

    def __init__(self, path: str, types: Mapping[str, pa.DataType], delimiter: str) -> None:
        self._path = path
        self._delimiter = delimiter
        self._types = dict(types)
        guessed = self._open().schema
        for field in guessed:
            if pa.types.is_null(field.type):
                self._types[field.name] = pa.string()
            if pa.types.is_binary(field.type) and field.name not in types:
                raise InvalidRequestError(
                    f'{path}: column "{field.name}" is no UTF-8; convert the file, or give its type'
                )
        self.schema = self._open().schema

    def count_rows(self) -> None:
        """Say that only reading tells."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; errors as those of making this."""
        try:
            yield from self._open()
        except pa.ArrowException as error:
            raise InvalidRequestError(
                f"{self._path}: {error}; give the type of the column by --type"
            ) from error

    def _open(self) -> pa.csv.CSVStreamingReader:
        try:
            return pa.csv.open_csv(
                pa.input_stream(self._path, compression="detect"),
                parse_options=pa.csv.ParseOptions(delimiter=self._delimiter),
                convert_options=pa.csv.ConvertOptions(
                    column_types=self._types,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except (pa.ArrowException, OSError) as error:
            raise InvalidRequestError(f"{self._path} cannot be read: {error}") from error
