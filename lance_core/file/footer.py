"""The last 40 bytes of a Lance file (file format, sections 1.1 and 1.2)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.encodings.version import FileVersion
from lance_core.errors import CorruptFileError, UnsupportedFeatureError

if TYPE_CHECKING:
    from lance_core.io.scheduler import Tail

_FOOTER = struct.Struct("<QQQIIHH4s")
_END = struct.Struct("<HH4s")
_MAGIC = b"LANC"
_FIRST_2_0 = (0, 3)
_UNSTABLE = (2, 3)
TABLE_ENTRY_BYTES = 16
"""An entry of the two offset tables: position and length."""


_VERSIONS = {
    (0, 3): FileVersion.V2_0,
    (2, 0): FileVersion.V2_0,
    (2, 1): FileVersion.V2_1,
    (2, 2): FileVersion.V2_2,
}


@dataclass(frozen=True, slots=True)
class Footer:
    """Where the metadata lies; the order of its parts in the file was checked."""

    column_metadata_start: int
    column_table_start: int
    buffer_table_start: int
    num_buffers: int
    num_columns: int
    version: FileVersion


def parse_footer(path: str, tail: Tail) -> Footer:
    """Read the footer out of the end of a file.

    Raises
    ------
    CorruptFileError
        No Lance file, cut off, or its tables lie outside it.
    UnsupportedFeatureError
        A legacy 0.x file, or a version newer than 2.2.
    """
    view, _, size = tail
    if len(view) < _END.size:
        raise CorruptFileError(path, f"{size} bytes are too few for a Lance file")
    major, minor, magic = _END.unpack_from(view, len(view) - _END.size)
    if magic != _MAGIC:
        raise CorruptFileError(
            path,
            f"the file does not end in LANC but in {magic!r}: it is no Lance file, or cut off",
            offset=size - len(_MAGIC),
        )
    version = _version(path, (major, minor))
    if len(view) < _FOOTER.size:
        raise CorruptFileError(path, f"{size} bytes are too few for a Lance file")
    columns_at, column_table_at, buffer_table_at, num_buffers, num_columns, _, _, _ = (
        _FOOTER.unpack_from(view, len(view) - _FOOTER.size)
    )
    footer = Footer(columns_at, column_table_at, buffer_table_at, num_buffers, num_columns, version)
    _check_order(path, footer, size)
    return footer


def _version(path: str, numbers: tuple[int, int]) -> FileVersion:
    major, minor = numbers
    if numbers < _FIRST_2_0:
        raise UnsupportedFeatureError(
            f"{path} is a legacy Lance file ({major}.{minor}), which is not supported; "
            'write the table anew with data_storage_version="2.2"'
        )
    if numbers == _UNSTABLE:
        raise UnsupportedFeatureError(
            f"{path} is a Lance file of version 2.3, which is unstable and not supported; "
            "write the dataset with data storage version 2.2"
        )
    if numbers not in _VERSIONS:
        raise UnsupportedFeatureError(
            f"{path} is a Lance file of version {major}.{minor}; versions 2.0 to 2.2 are supported"
        )
    return _VERSIONS[numbers]


def _check_order(path: str, footer: Footer, size: int) -> None:
    column_table_end = footer.column_table_start + footer.num_columns * TABLE_ENTRY_BYTES
    buffer_table_end = footer.buffer_table_start + footer.num_buffers * TABLE_ENTRY_BYTES
    in_order = (
        footer.column_metadata_start <= footer.column_table_start
        and column_table_end <= footer.buffer_table_start
        and buffer_table_end <= size - _FOOTER.size
        and footer.num_buffers > 0
    )
    if not in_order:
        raise CorruptFileError(
            path, "the footer names tables that do not fit", offset=size - _FOOTER.size
        )
