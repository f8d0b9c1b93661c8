"""Columns of index files, checked against what the format says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import UnknownColumnError
from lance_core.index.registry import UnusableSegmentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from lance_core.file.reader import ColumnTarget, LanceFileReader


def stored_column(reader: LanceFileReader, name: str, types: Sequence[pa.DataType]) -> ColumnTarget:
    """Return a column of a file as something to read.

    Raises
    ------
    UnusableSegmentError
        It is missing, or has none of the types.
    """
    try:
        target = reader.target(name)
    except UnknownColumnError as error:
        raise UnusableSegmentError(f'column "{name}" is missing in {reader.path}') from error
    if target.arrow_type not in types:
        raise UnusableSegmentError(
            f'column "{name}" of {reader.path} has type {target.arrow_type}, expected {types[0]}'
        )
    return target


def find_stored(reader: LanceFileReader, types: Mapping[str, pa.DataType]) -> list[ColumnTarget]:
    """Return columns of a file, in the order of their names in ``types``; as `stored_column`."""
    return [stored_column(reader, name, [kind]) for name, kind in types.items()]


def read_stored(reader: LanceFileReader, types: Mapping[str, pa.DataType]) -> list[pa.Array]:
    """Read columns of a file whole, in one go; errors also as ``LanceFileReader.read``."""
    return reader.read(find_stored(reader, types), [(0, reader.num_rows)])
