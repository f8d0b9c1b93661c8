"""Columns of index files, checked against what the format says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import UnknownColumnError
from lance_core.index.registry import UnusableSegmentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lance_core.file.reader import ColumnTarget, LanceFileReader


def find_stored(reader: LanceFileReader, types: Mapping[str, pa.DataType]) -> list[ColumnTarget]:
    """Return columns of a file as something to read, in the order of their names in ``types``.

    Raises
    ------
    UnusableSegmentError
        A column is missing or has another type.
    """
    return [_find(reader, name, kind) for name, kind in types.items()]


def read_stored(reader: LanceFileReader, types: Mapping[str, pa.DataType]) -> list[pa.Array]:
    """Read columns of a file whole, in one go; errors also as ``LanceFileReader.read``."""
    return reader.read(find_stored(reader, types), [(0, reader.num_rows)])


def _find(reader: LanceFileReader, name: str, kind: pa.DataType) -> ColumnTarget:
    try:
        target = reader.target(name)
    except UnknownColumnError as error:
        raise UnusableSegmentError(f'column "{name}" is missing in its files') from error
    if target.arrow_type != kind:
        raise UnusableSegmentError(f'column "{name}" has type {target.arrow_type}, expected {kind}')
    return target
