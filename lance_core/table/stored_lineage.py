"""What a table with stable row ids records of each row: its id, and the versions that changed it.

A fragment keeps each sequence inline in the manifest, or spilled into a hidden column of one of its
data files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError
from lance_core.file.columns import ColumnTarget
from lance_core.ids import ColumnIndex, FieldId
from lance_core.schema.field import LanceField
from lance_core.table.fragment import HiddenColumn
from lance_core.table.row_ids import RowIds, decode_row_ids
from lance_core.table.row_versions import RowVersions, decode_row_versions

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import DataFile, Fragment, StoredSequence
    from lance_core.table.snapshot import Snapshot

T = TypeVar("T", RowIds, RowVersions)


def row_ids_of(files: TableFiles, snapshot: Snapshot, fragment: Fragment) -> RowIds:
    """Return the stable id of every physical row of a fragment.

    Parameters
    ----------
    files
        Opens data files, and keeps what was decoded.
    snapshot
        A version with stable row ids.
    fragment
        One of its fragments.

    Raises
    ------
    CorruptFileError
        The fragment has no row ids, or another number of them than rows, or they contradict the
        format.
    """
    stored = fragment.row_ids
    if stored is None:
        raise CorruptFileError(
            snapshot.manifest.path, f"fragment {fragment.id} of a table with row ids has none"
        )
    return _sequence(files, snapshot, fragment, "row ids", stored, decode_row_ids, RowIds.of_values)


def created_at_versions(
    files: TableFiles, snapshot: Snapshot, fragment: Fragment
) -> RowVersions | None:
    """Return the version that created each physical row, None where old writers left it out.

    Parameters and errors as `row_ids_of`.
    """
    return _versions(files, snapshot, fragment, "created-at versions", fragment.created_at)


def last_updated_at_versions(
    files: TableFiles, snapshot: Snapshot, fragment: Fragment
) -> RowVersions | None:
    """Return the version that changed each physical row last; otherwise `created_at_versions`."""
    return _versions(files, snapshot, fragment, "last-updated-at versions", fragment.updated_at)


def _versions(
    files: TableFiles,
    snapshot: Snapshot,
    fragment: Fragment,
    what: str,
    stored: StoredSequence | None,
) -> RowVersions | None:
    if stored is None:
        return None
    return _sequence(
        files, snapshot, fragment, what, stored, decode_row_versions, RowVersions.of_values
    )


def _sequence(
    files: TableFiles,
    snapshot: Snapshot,
    fragment: Fragment,
    what: str,
    stored: StoredSequence,
    decode: Callable[[bytes, str], T],
    of_values: Callable[[NDArray[np.uint64]], T],
) -> T:
    path = snapshot.manifest.path

    def load() -> T:
        if isinstance(stored, HiddenColumn):
            found = of_values(_hidden_values(files, snapshot, fragment, stored))
        else:
            found = decode(stored, path)
        if len(found) != fragment.physical_rows:
            raise CorruptFileError(
                path,
                f"fragment {fragment.id} has {fragment.physical_rows} rows, but {what} of"
                f" {len(found)}",
            )
        return found

    key = CacheKey(what, snapshot.scheduler.store.key, (snapshot.incarnation, fragment.id))
    return files.cache.get_or_load(key, load)


def _hidden_values(
    files: TableFiles, snapshot: Snapshot, fragment: Fragment, column: HiddenColumn
) -> NDArray[np.uint64]:
    data_file, index = _hidden_column(snapshot, fragment, column)
    reader = files.reader(snapshot, data_file)
    if reader.num_rows != fragment.physical_rows:
        raise CorruptFileError(
            reader.path,
            f"has {reader.num_rows} rows, fragment {fragment.id} has {fragment.physical_rows}",
        )
    field = LanceField(FieldId(column), column.name.lower(), "uint64", nullable=False)
    (array,) = reader.read([ColumnTarget(field, {field.id: index})], [(0, reader.num_rows)])
    if array.null_count > 0 or array.type != pa.uint64():
        raise CorruptFileError(reader.path, f"hidden column {column} is no column of numbers")
    values: NDArray[np.uint64] = array.to_numpy()
    return values


def _hidden_column(
    snapshot: Snapshot, fragment: Fragment, column: HiddenColumn
) -> tuple[DataFile, ColumnIndex]:
    for data_file in fragment.data_files:
        if not data_file.is_legacy and column in data_file.field_ids:
            index = data_file.column_indices[data_file.field_ids.index(column)]
            if index >= 0:
                return data_file, ColumnIndex(index)
    raise CorruptFileError(
        snapshot.manifest.path, f"no file of fragment {fragment.id} has hidden column {column}"
    )
