"""The file that holds the rows of all partitions, one partition after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import CorruptFileError, UnknownColumnError
from lance_core.file.mapped_rows import map_rows
from lance_core.index.registry import UnusableSegmentError
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.file.mapped_rows import MappedRows
    from lance_core.file.reader import ColumnTarget, LanceFileReader
    from lance_core.index.vector.quantizer import PayloadColumn
    from lance_core.io.store import ObjectStore

ROW_ID_COLUMN = "_rowid"
_ALIGNMENT = 4


@dataclass(frozen=True, slots=True, eq=False)
class PartitionStorage:
    """``auxiliary.idx``: row addresses, and what the quantiser keeps of each row.

    Parameters
    ----------
    reader
        The file.
    row_ids
        Its column of row addresses.
    payload
        The columns of the quantiser, in its order.
    """

    reader: LanceFileReader
    row_ids: ColumnTarget
    payload: tuple[ColumnTarget, ...]

    def map_payload(self, store: ObjectStore, row_bytes: int) -> MappedRows | None:
        """Map the first payload column, None where it does not lie raw in a local file."""
        target = self.payload[0]
        column = target.columns[target.field.id]
        return map_rows(self.reader, column, store, row_bytes=row_bytes, alignment=_ALIGNMENT)


def find_columns(reader: LanceFileReader, columns: Sequence[PayloadColumn]) -> PartitionStorage:
    """Find the columns that a quantiser needs; others are ignored.

    Raises
    ------
    UnusableSegmentError
        A column is missing, or its values are of a type that is not supported.
    CorruptFileError
        A column has another width than the quantiser says, or row addresses another type.
    """
    row_ids, row_id_type = _find(reader, ROW_ID_COLUMN)
    if row_id_type != pa.uint64():
        raise CorruptFileError(reader.path, f'column "{ROW_ID_COLUMN}" has type {row_id_type}')
    return PartitionStorage(reader, row_ids, tuple(_payload(reader, each) for each in columns))


def _payload(reader: LanceFileReader, wanted: PayloadColumn) -> ColumnTarget:
    target, found = _find(reader, wanted.name)
    value_type = found
    if wanted.width is not None:
        if not pa.types.is_fixed_size_list(found) or found.list_size != wanted.width:
            raise CorruptFileError(
                reader.path,
                f'column "{wanted.name}" has type {found}, expected lists of {wanted.width}',
            )
        value_type = found.value_type
    if value_type not in wanted.value_types:
        raise UnusableSegmentError(f'column "{wanted.name}" of type {found} is not supported')
    return target


def _find(reader: LanceFileReader, name: str) -> tuple[ColumnTarget, pa.DataType]:
    try:
        target = reader.target(name)
    except UnknownColumnError as error:
        raise UnusableSegmentError(f'column "{name}" is missing in its files') from error
    return target, arrow_type(target.field)
