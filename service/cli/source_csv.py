"""Rows of files of comma- or tab-separated values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.operations.csv_rows import csv_batches, csv_schema

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
        try:
            guessed = csv_schema(self._open, types, delimiter)
        except (pa.ArrowException, OSError) as error:
            raise InvalidRequestError(f"{path} cannot be read: {error}") from error
        for field in guessed:
            if pa.types.is_null(field.type):
                self._types[field.name] = pa.string()
            if pa.types.is_binary(field.type) and field.name not in types:
                raise InvalidRequestError(
                    f'{path}: column "{field.name}" is no UTF-8; convert the file, or give its type'
                )
        self.schema = pa.schema(
            [field.with_type(self._types.get(field.name, field.type)) for field in guessed]
        )

    def count_rows(self) -> None:
        """Say that only reading tells."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; errors as those of making this."""
        types = {field.name: field.type for field in self.schema}
        try:
            yield from csv_batches(self._open, types, self._delimiter)
        except pa.ArrowException as error:
            raise InvalidRequestError(
                f"{self._path}: {error}; give the type of the column by --type"
            ) from error

    def _open(self) -> pa.NativeFile:
        return pa.input_stream(self._path, compression="detect")
