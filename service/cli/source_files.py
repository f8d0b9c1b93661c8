"""Rows of Parquet, CSV, JSON lines and Arrow files, as one stream of batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from lance_core.errors import InvalidRequestError
from service.cli.source_csv import CsvFile
from service.cli.source_json import JsonLines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Types = Mapping[str, pa.DataType]

_COMMA, _TAB = ",", "\t"
_DELIMITERS = {".csv": _COMMA, ".tsv": _TAB}
_JSON_LINES = frozenset((".jsonl", ".ndjson", ".json"))
_OF_ARROW = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
_COMPRESSIONS = frozenset((".gz", ".bz2", ".zst", ".lz4"))
_READ_AHEAD_BATCHES = 2


class Source(Protocol):
    """Rows that can be read more than once."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of all batches."""

    def count_rows(self) -> int | None:
        """Return how many rows there are, None if that can only be found by reading them."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""


class SourceFiles:
    """Some files of rows, read one after the other.

    Parameters
    ----------
    paths
        Files; their names tell the format, as ``a.parquet``, ``a.csv.gz``, ``a.jsonl``.
    types
        Types of columns that are known already, as those of the table to append to.
    delimiter
        What stands between values of CSV files; None = a comma, or a tab in ``.tsv``.

    Raises
    ------
    InvalidRequestError
        A name tells no format, a file cannot be read, or columns of one name differ in type.
    """

    def __init__(self, paths: Sequence[str], types: Types, delimiter: str | None = None) -> None:
        self._parts = {path: _open(path, types, delimiter) for path in paths}
        schemas = [_known(part.schema, types) for part in self._parts.values()]
        try:
            self.schema = pa.unify_schemas(schemas)
        except pa.ArrowException as error:
            raise InvalidRequestError(f"the files do not go together: {error}") from error

    def count_rows(self) -> int | None:
        """Return how many rows there are, None if that can only be found by reading them."""
        counts = [part.count_rows() for part in self._parts.values()]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def batches(self, watch: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """Yield all rows, with the columns of all files; ``watch`` hears the rows of each batch.

        Raises
        ------
        InvalidRequestError
            A value does not fit the type of its column.
        """
        for path, part in self._parts.items():
            for batch in part.batches():
                yield _fitted(path, batch, self.schema)
                watch(batch.num_rows)


class _ArrowFile:
    """A file that says itself what columns it has."""

    def __init__(self, path: str, form: str) -> None:
        self._path = path
        try:
            self._dataset = ds.dataset(path, format=form)
        except (pa.ArrowException, OSError) as error:
            raise InvalidRequestError(f"{path} cannot be read: {error}") from error
        self.schema: pa.Schema = self._dataset.schema

    def count_rows(self) -> int:
        count: int = self._dataset.count_rows()
        return count

    def batches(self) -> Iterator[pa.RecordBatch]:
        scanner = self._dataset.scanner(batch_readahead=_READ_AHEAD_BATCHES, fragment_readahead=1)
        try:
            yield from scanner.to_batches()
        except (pa.ArrowException, OSError) as error:
            raise InvalidRequestError(f"{self._path}: {error}") from error


def _open(path: str, types: Types, delimiter: str | None) -> Source:
    place = Path(path)
    suffixes = [suffix.lower() for suffix in place.suffixes if suffix.lower() not in _COMPRESSIONS]
    ending = suffixes[-1] if suffixes else ""
    if ending not in {*_DELIMITERS, *_JSON_LINES, *_OF_ARROW}:
        known = ", ".join((*_DELIMITERS, *sorted(_JSON_LINES), *_OF_ARROW))
        raise InvalidRequestError(f"{path}: the name tells no format; names end in {known}")
    if not place.is_file():
        raise InvalidRequestError(f"there is no file {path}")
    if ending in _OF_ARROW:
        return _ArrowFile(path, _OF_ARROW[ending])
    if ending in _DELIMITERS:
        return CsvFile(path, types, _DELIMITERS[ending] if delimiter is None else delimiter)
    return JsonLines(path, types)


def _known(schema: pa.Schema, types: Types) -> pa.Schema:
    fields = [field.with_type(types.get(field.name, field.type)) for field in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _fitted(path: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with all columns of a schema, those that it lacks null; loses no value."""
    arrays = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        try:
            arrays.append(
                pa.nulls(batch.num_rows, field.type)
                if place < 0
                else batch.column(place).cast(field.type)
            )
        except (pa.ArrowException, ValueError) as error:
            raise InvalidRequestError(f'{path}, column "{field.name}": {error}') from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
