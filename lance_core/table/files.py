"""Opened files of a dataset, kept in the shared cache: data files and deleted offsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.file.columns import ColumnTarget
from lance_core.file.reader import LanceFileReader
from lance_core.table.deletion import deleted_offsets_at
from lance_core.table.naming import DATA_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.ids import ColumnIndex, FieldId
    from lance_core.schema.field import LanceField
    from lance_core.table.base_paths import Place
    from lance_core.table.fragment import DataFile, DeletionFile, Fragment
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """Columns of a fragment that lie in one data file, which lies at ``place``.

    ``positions[i]`` says which of the fields asked for ``targets[i]`` is.
    """

    place: Place
    reader: LanceFileReader
    targets: tuple[ColumnTarget, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlacedColumns:
    """Columns of a fragment that lie in one data file, which need not be open.

    ``positions[i]`` says which of the fields asked for ``targets[i]`` is.
    """

    data_file: DataFile
    targets: tuple[ColumnTarget, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _DeletedOffsets:
    """A deletion vector as the cache keeps it."""

    offsets: BitMap
    nbytes: int


class TableFiles:
    """Opens the files of snapshots, each once.

    Keys hold the store and the path. Data and deletion files carry random names and never change,
    so an entry serves all versions that share the file, and a dataset made anew at the same place
    has other names.

    Parameters
    ----------
    cache
        Holds footers, page states and deletion vectors; may be shared with other datasets.
    """

    def __init__(self, cache: ByteCache) -> None:
        self.cache = cache

    def reader(self, snapshot: Snapshot, data_file: DataFile) -> LanceFileReader:
        """Open a data file.

        Raises
        ------
        CorruptFileError
            The file is missing or contradicts the format.
        UnsupportedFeatureError
            It is a legacy 0.1 file, or lies below a base path that may not be read.
        """
        _refuse_legacy(data_file)
        place = snapshot.data_place(data_file)
        store, path = place.key
        key = CacheKey("data file", store, (path, data_file.size))
        return self.cache.get_or_load(key, lambda: _open(place, data_file))

    def deleted(self, snapshot: Snapshot, fragment: Fragment) -> BitMap:
        """Return the deleted offsets of a fragment; shared, so do not change the bitmap.

        Raises
        ------
        CorruptFileError
            The deletion file is missing or contradicts the format or the manifest.
        """
        deletion_file = fragment.deletion_file
        if deletion_file is None:
            return BitMap()
        place = snapshot.deletion_place(fragment.id, deletion_file)
        key = CacheKey("deletion file", *place.key)
        return self.cache.get_or_load(
            key, lambda: _load_deleted(place, fragment, deletion_file)
        ).offsets

    def num_live_rows(self, snapshot: Snapshot, fragment: Fragment) -> int:
        """Return how many rows of a fragment a scan returns, from the manifest if it says so."""
        if fragment.physical_rows == 0 and any(file.is_legacy for file in fragment.data_files):
            raise UnsupportedFeatureError(
                f"fragment {fragment.id} has legacy 0.1 files and no row count; write the table "
                'anew with data_storage_version="2.2"'
            )
        if fragment.deletion_file is not None and fragment.num_deleted_rows == 0:
            return fragment.physical_rows - len(self.deleted(snapshot, fragment))
        return fragment.num_live_rows

    def columns(
        self, snapshot: Snapshot, fragment: Fragment, fields: Sequence[LanceField]
    ) -> list[StoredColumns]:
        """Find and open the files that hold ``fields``.

        Parameters
        ----------
        fields
            Fields of the schema, at any level of nesting.

        Returns
        -------
        list[StoredColumns]
            One entry per file. A field in no entry is stored nowhere and reads as null; a nested
            one may be in several, each with the children that its file holds.

        Raises
        ------
        CorruptFileError
            A file is missing, or has another number of rows than the fragment.
        UnsupportedFeatureError
            A file is a legacy 0.1 file, or lies below a base path that may not be read.
        """
        return self.open_columns(snapshot, fragment, place_columns(fragment, fields))

    def open_columns(
        self, snapshot: Snapshot, fragment: Fragment, placed: Sequence[PlacedColumns]
    ) -> list[StoredColumns]:
        """Open the files of columns that `place_columns` has found; errors as ``columns``."""
        found: list[StoredColumns] = []
        for each in placed:
            place = snapshot.data_place(each.data_file)
            reader = self.reader(snapshot, each.data_file)
            _check_num_rows(reader, fragment)
            found.append(StoredColumns(place, reader, each.targets, each.positions))
        return found


def place_columns(fragment: Fragment, fields: Sequence[LanceField]) -> tuple[PlacedColumns, ...]:
    """Find the files that hold ``fields``, opening none; errors and order as ``columns``."""
    found = [(data_file, _targets(data_file, fields)) for data_file in fragment.data_files]
    return tuple(
        PlacedColumns(data_file, tuple(targets.values()), tuple(targets))
        for data_file, targets in found
        if targets
    )


def _refuse_legacy(data_file: DataFile) -> None:
    if data_file.is_legacy:
        raise UnsupportedFeatureError(
            f"{DATA_FOLDER}/{data_file.path} is a legacy 0.1 file; write the table anew with "
            'data_storage_version="2.2"'
        )


def _targets(data_file: DataFile, fields: Sequence[LanceField]) -> dict[int, ColumnTarget]:
    """Return what ``data_file`` holds of ``fields``, by position in ``fields``."""
    if fields:
        _refuse_legacy(data_file)
    columns = data_file.columns
    targets: dict[int, ColumnTarget] = {}
    for position, field in enumerate(fields):
        held = _held_part(field, columns)
        if held is not None:
            mapped = {each.id: columns[each.id] for each in held.walk() if each.id in columns}
            targets[position] = ColumnTarget(held, mapped)
    return targets


def _held_part(field: LanceField, columns: Mapping[FieldId, ColumnIndex]) -> LanceField | None:
    """Return ``field`` without the children that have no column, None if nothing is left."""
    if field.owns_column:
        return field if field.id in columns else None
    parts = [_held_part(child, columns) for child in field.children]
    children = tuple(part for part in parts if part is not None)
    if not children:
        return None
    is_whole = all(part is child for part, child in zip(parts, field.children, strict=True))
    return field if is_whole else replace(field, children=children)


def _open(place: Place, data_file: DataFile) -> LanceFileReader:
    try:
        return LanceFileReader.open(place.scheduler, place.path, data_file.size)
    except ObjectNotFoundError as error:
        raise CorruptFileError(place.path, "named by the manifest but missing") from error


def _check_num_rows(reader: LanceFileReader, fragment: Fragment) -> None:
    if reader.num_rows != fragment.physical_rows:
        raise CorruptFileError(
            reader.path,
            f"has {reader.num_rows} rows, fragment {fragment.id} has {fragment.physical_rows}",
        )


def _load_deleted(place: Place, fragment: Fragment, deletion_file: DeletionFile) -> _DeletedOffsets:
    offsets = deleted_offsets_at(place, fragment, deletion_file)
    return _DeletedOffsets(offsets, len(offsets.serialize()))
