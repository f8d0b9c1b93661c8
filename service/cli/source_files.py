"""Rows of Parquet, CSV, JSON lines and Arrow files, as one stream of batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
_COMPRESSIONS = frozenset((".gz", ".bz2", ".zst", ".lz4"))
_READ_AHEAD_BATCHES = 2


class SourceFiles:
    """Some files of rows, read one after the other.

    Parameters
    ----------
    paths
        Files; their names tell the format, as ``a.parquet``, ``a.csv.gz``, ``a.jsonl``.

    Raises
    ------
    InvalidRequestError
        A name tells no format, a file cannot be read, or columns of one name differ in type.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._parts = [_open(path) for path in paths]
        try:
            self.schema = pa.unify_schemas([part.schema for part in self._parts])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidRequestError(f"the files do not go together: {error}") from error
        self._formats = [_format_of(Path(path)) for path in paths]

    def count_rows(self) -> int | None:
        """Return how many rows there are, None if that can only be found by reading them."""
        if any(kind not in {"parquet", "ipc"} for kind in self._formats):
            return None
        counts: list[int] = [part.count_rows() for part in self._parts]
        return sum(counts)

    def batches(self, watch: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """Yield all rows, with the columns of all files; ``watch`` hears the rows of each batch.

        Raises
        ------
        InvalidRequestError
            A file turns out to hold something else than its beginning promised.
        """
        for part in self._parts:
            scanner = part.replace_schema(self.schema).scanner(
                batch_readahead=_READ_AHEAD_BATCHES, fragment_readahead=1
            )
            try:
                for batch in scanner.to_batches():
                    yield batch
                    watch(batch.num_rows)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise InvalidRequestError(f"{part.files[0]}: {error}") from error


def with_vectors(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Turn columns of lists into vectors, whose dimension is that of the first one.

    Parameters
    ----------
    schema
        Schema of the batches.
    batches
        The rows.
    columns
        Columns of lists of numbers, all of one length.

    Raises
    ------
    InvalidRequestError
        A column is no such thing. Later batches raise it while they are read.
    """
    if len(columns) == 0:
        return pa.RecordBatchReader.from_batches(schema, batches)
    for name in columns:
        if schema.get_field_index(name) < 0:
            raise InvalidRequestError(f'there is no column "{name}" to make vectors of')
    waiting: list[pa.RecordBatch] = []
    dimensions: dict[str, int] = {}
    for batch in batches:
        waiting.append(batch)
        for name in columns:
            if name not in dimensions:
                dimensions.update(_dimension(name, batch.column(name)))
        if len(dimensions) == len(columns):
            break
    if len(dimensions) < len(columns):
        missing = next(name for name in columns if name not in dimensions)
        raise InvalidRequestError(f'column "{missing}" holds no list, so no dimension is known')
    for name, dimension in dimensions.items():
        field = schema.field(name)
        vector = pa.list_(pa.field("item", field.type.value_type), dimension)
        schema = schema.set(schema.get_field_index(name), field.with_type(vector))
    return pa.RecordBatchReader.from_batches(
        schema, (_cast(batch, schema) for batch in _chained(waiting, batches))
    )


def _open(path: str) -> ds.FileSystemDataset:
    kind = _format_of(Path(path))
    if not Path(path).is_file():
        raise InvalidRequestError(f"there is no file {path}")
    form = kind
    if kind == "tsv":
        form = ds.CsvFileFormat(pa.csv.ParseOptions(delimiter="\t"))
    try:
        return ds.dataset(path, format=form)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidRequestError(f"{path} cannot be read: {error}") from error


def _format_of(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in _COMPRESSIONS else path
    kind = _FORMATS.get(name.suffix.lower())
    if kind is None:
        known = ", ".join(_FORMATS)
        raise InvalidRequestError(f"{path}: the name tells no format; names end in {known}")
    return kind


def _dimension(name: str, array: pa.Array) -> dict[str, int]:
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise InvalidRequestError(f'column "{name}" has type {array.type}, which is no list')
    lengths = array.value_lengths().drop_null()
    return {name: lengths[0].as_py()} if len(lengths) > 0 else {}


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return batch.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequestError(f"not all vectors are of one length: {error}") from error


def _chained(
    first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield from first
    yield from rest
