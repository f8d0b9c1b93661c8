"""Checking that a file is there, and that every row of a Lance file can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import CorruptFileError, ObjectNotFoundError

if TYPE_CHECKING:
    from lance_core.file.reader import LanceFileReader
    from lance_core.table.base_paths import Place


def check_size(place: Place, size: int | None) -> None:
    """Check that a file is there, with the bytes that a manifest says; None = it says nothing.

    Raises
    ------
    CorruptFileError
        It is not.
    """
    try:
        found = place.scheduler.store.head(place.path).size
    except ObjectNotFoundError as error:
        raise CorruptFileError(place.path, "named by the manifest but missing") from error
    if size is not None and found != size:
        raise CorruptFileError(place.path, f"has {found} bytes, the manifest says {size}")


def read_all_rows(reader: LanceFileReader) -> None:
    """Decode all columns of a file and the bytes of its blobs, some megabytes at a time.

    Raises
    ------
    CorruptFileError
        Something cannot be decoded, is no sound array, or is null where its column allows no nulls.
    UnsupportedFeatureError
        A column is stored in a way that this release does not read.
    """
    fields = reader.schema.fields
    targets = [reader.target(field.name, blob_handling="all_binary") for field in fields]
    num_rows = 0
    for batch in reader.scan(targets):
        num_rows += batch.num_rows
        for field, column in zip(fields, batch.columns, strict=True):
            _check_sound(reader.path, field.name, column)
            if column.null_count > 0 and not (field.nullable or field.is_blob):
                raise CorruptFileError(reader.path, f"column {field.name!r} has nulls")
    if num_rows != reader.num_rows:
        raise CorruptFileError(reader.path, f"{num_rows} of {reader.num_rows} rows can be read")


def _check_sound(path: str, name: str, column: pa.Array) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(path, f"column {name!r}: {error}") from error
