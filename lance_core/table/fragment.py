"""Fragments, their data files and their deletion files, as the manifest lists them."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.ids import ColumnIndex, FieldId, FragmentId
from lance_core.table.naming import deletion_file_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.proto import table_pb2

_LARGEST_FRAGMENT_ID = 0xFFFF_FFFE  # the last one marks a row address as a tombstone
_LARGEST_ROW_COUNT = 1 << 32


@dataclass(frozen=True)
class DataFile:
    """One Lance file of a fragment; it holds some columns of all its rows.

    ``size`` is None where the writer did not record it; ``base_id`` names a base path.
    """

    path: str
    field_ids: tuple[int, ...]
    column_indices: tuple[int, ...]
    major_version: int
    minor_version: int
    size: int | None
    base_id: int | None

    @property
    def is_legacy(self) -> bool:
        """Whether this is a 0.1 file; version (0, 3) is how some writers spell 2.0."""
        return (self.major_version, self.minor_version) < (0, 3)

    @cached_property
    def columns(self) -> Mapping[FieldId, ColumnIndex]:
        """Column of each live field.

        Negative field ids are skipped (dropped columns and hidden lineage columns), as are negative
        column indices, which some writers give to parents that own no column. A legacy file
        records no columns.
        """
        if self.is_legacy:
            return {}
        return {
            FieldId(field_id): ColumnIndex(column)
            for field_id, column in zip(self.field_ids, self.column_indices, strict=True)
            if field_id >= 0 and column >= 0
        }


class DeletionFileType(enum.Enum):
    """How a deletion file stores its offsets; the value is the suffix of its name."""

    ARROW_ARRAY = "arrow"
    BITMAP = "bin"


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Names the file that holds all deleted offsets of a fragment."""

    file_type: DeletionFileType
    read_version: int
    id: int
    num_deleted_rows: int
    base_id: int | None

    def file_name(self, fragment_id: FragmentId) -> str:
        """Name of the file in its folder."""
        suffix = self.file_type.value
        return deletion_file_name(fragment_id, self.read_version, self.id, suffix)


class HiddenColumn(enum.IntEnum):
    """Columns of data files that hold what a fragment's rows are, not what they say.

    The values are the field ids that data files give them.
    """

    ROW_ID = -3
    ROW_CREATED_AT_VERSION = -4
    ROW_LAST_UPDATED_AT_VERSION = -5


StoredSequence = bytes | HiddenColumn
"""A number per row: serialized in the manifest, or spilled into a hidden column."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A set of rows, stored in one or more data files side by side.

    ``physical_rows`` counts deleted rows too. Of the last three, tables without stable row ids have
    none, and old writers left the versions out.
    """

    id: FragmentId
    physical_rows: int
    data_files: tuple[DataFile, ...]
    deletion_file: DeletionFile | None
    row_ids: StoredSequence | None = None
    created_at: StoredSequence | None = None
    updated_at: StoredSequence | None = None

    @property
    def num_deleted_rows(self) -> int:
        """Deleted rows as the manifest counts them, without reading the deletion file."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_live_rows(self) -> int:
        """Rows that a scan returns."""
        return self.physical_rows - self.num_deleted_rows


def fragment_from_proto(message: table_pb2.DataFragment, path: str) -> Fragment:
    """Convert and check one fragment of a manifest.

    Parameters
    ----------
    message
        The fragment.
    path
        The manifest, for errors.

    Raises
    ------
    CorruptFileError
        An id or a count is out of range, or a data file lists fields without columns.
    UnsupportedFeatureError
        The fragment has data overlay files.
    """
    if not 0 <= message.id <= _LARGEST_FRAGMENT_ID:
        raise CorruptFileError(path, f"fragment id {message.id} does not fit a row address")
    if message.physical_rows > _LARGEST_ROW_COUNT:
        raise CorruptFileError(path, f"fragment {message.id} claims {message.physical_rows} rows")
    if message.overlays:
        raise UnsupportedFeatureError(f"{path}: fragment {message.id} has data overlay files")
    fragment = Fragment(
        id=FragmentId(message.id),
        physical_rows=message.physical_rows,
        data_files=tuple(_data_file(file, path) for file in message.files),
        deletion_file=_deletion_file(message.deletion_file, path)
        if message.HasField("deletion_file")
        else None,
        row_ids=_sequence(message, "row_ids", HiddenColumn.ROW_ID),
        created_at=_sequence(message, "created_at_versions", HiddenColumn.ROW_CREATED_AT_VERSION),
        updated_at=_sequence(
            message, "last_updated_at_versions", HiddenColumn.ROW_LAST_UPDATED_AT_VERSION
        ),
    )
    if fragment.num_live_rows < 0:
        raise CorruptFileError(
            path,
            f"fragment {fragment.id} has {fragment.physical_rows} rows, "
            f"{fragment.num_deleted_rows} of them deleted",
        )
    return fragment


def _sequence(
    message: table_pb2.DataFragment,
    name: Literal["row_ids", "created_at_versions", "last_updated_at_versions"],
    column: HiddenColumn,
) -> StoredSequence | None:
    arm = message.WhichOneof(name)
    if arm is None:
        return None
    return bytes(getattr(message, arm)) if arm.startswith("inline") else column


def _data_file(message: table_pb2.DataFile, path: str) -> DataFile:
    data_file = DataFile(
        path=message.path,
        field_ids=tuple(message.fields),
        column_indices=tuple(message.column_indices),
        major_version=message.file_major_version,
        minor_version=message.file_minor_version,
        size=message.file_size_bytes or None,  # 0 is how the format spells "not recorded"
        base_id=message.base_id if message.HasField("base_id") else None,
    )
    if not data_file.is_legacy and len(data_file.field_ids) != len(data_file.column_indices):
        raise CorruptFileError(
            path,
            f"data file {data_file.path} lists {len(data_file.field_ids)} fields "
            f"but {len(data_file.column_indices)} columns",
        )
    return data_file


def _deletion_file(message: table_pb2.DeletionFile, path: str) -> DeletionFile:
    types = (DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP)
    if not 0 <= message.file_type < len(types):
        raise CorruptFileError(path, f"deletion file type {message.file_type} is unknown")
    return DeletionFile(
        file_type=types[message.file_type],
        read_version=message.read_version,
        id=message.id,
        num_deleted_rows=message.num_deleted_rows,
        base_id=message.base_id if message.HasField("base_id") else None,
    )
