"""Deletion files: the offsets of all deleted rows of one fragment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_core.errors import CorruptFileError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.row_set import bitmap_from_bytes
from lance_core.table.base_paths import Place
from lance_core.table.fragment import DeletionFileType
from lance_core.table.naming import DELETIONS_FOLDER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.table.fragment import DeletionFile, Fragment

_TAIL_BYTES = 64 << 10


def read_deleted_offsets(scheduler: RangeScheduler, fragment: Fragment) -> BitMap:
    """Read the deleted offsets of a fragment; without a deletion file there are none.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset.
    fragment
        The fragment as the manifest describes it.

    Returns
    -------
    BitMap
        Row offsets, all below ``fragment.physical_rows``.

    Raises
    ------
    CorruptFileError
        The file is missing, cannot be decoded, names rows the fragment has not, or holds another
        number of rows than the manifest says.
    UnsupportedFeatureError
        The file lies below a base path; `deleted_offsets_at` reads it there.

    Notes
    -----
    Lance table format, section "Deletion files"; verified against pylance 14.0.2. A deletion file
    is never a delta.
    """
    deletion_file = fragment.deletion_file
    if deletion_file is None:
        return BitMap()
    if deletion_file.base_id is not None:
        raise UnsupportedFeatureError(
            f"the deletion file of fragment {fragment.id} lies below base path"
            f" {deletion_file.base_id}"
        )
    path = f"{DELETIONS_FOLDER}/{deletion_file.file_name(fragment.id)}"
    return deleted_offsets_at(Place(scheduler, path), fragment, deletion_file)


def deleted_offsets_at(place: Place, fragment: Fragment, deletion_file: DeletionFile) -> BitMap:
    """Read the deletion file at ``place``; otherwise like `read_deleted_offsets`."""
    path = place.path
    data = _read_whole(place.scheduler, path)
    if deletion_file.file_type is DeletionFileType.BITMAP:
        deleted = bitmap_from_bytes(data, path)
    else:
        deleted = BitMap(_arrow_offsets(data, path))
    _check(deleted, fragment, path)
    return deleted


def _read_whole(scheduler: RangeScheduler, path: str) -> memoryview:
    try:
        tail, start, _ = scheduler.tail(path, None, _TAIL_BYTES)
    except ObjectNotFoundError as error:
        raise CorruptFileError(path, "named by the manifest but missing") from error
    if start == 0:
        return tail
    head = scheduler.read(path, [(0, start)])[0]
    return memoryview(b"".join((head, tail)))


def _arrow_offsets(data: memoryview, path: str) -> NDArray[np.uint32]:
    """Decode the one uint32 column of an Arrow file; its order is arbitrary."""
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        table.validate()
        columns, found = table.columns, str(table.schema)  # names may be no text
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise CorruptFileError(path, f"no Arrow file: {error}") from error
    if len(columns) != 1 or columns[0].type != pa.uint32():
        raise CorruptFileError(path, f"expected one uint32 column, found {found}")
    column = columns[0]
    if column.null_count > 0:
        raise CorruptFileError(path, f"{column.null_count} row offsets are null")
    offsets: NDArray[np.uint32] = column.to_numpy()
    return np.ascontiguousarray(offsets)


def _check(deleted: BitMap, fragment: Fragment, path: str) -> None:
    if len(deleted) > 0 and deleted.max() >= fragment.physical_rows:
        raise CorruptFileError(
            path, f"row {deleted.max()} is deleted, the fragment has {fragment.physical_rows}"
        )
    expected = fragment.num_deleted_rows
    # old writers left the count at 0; they never wrote a deletion file without a row
    if expected > 0 and len(deleted) != expected:
        raise CorruptFileError(
            path, f"{len(deleted)} rows are deleted, the manifest says {expected}"
        )
