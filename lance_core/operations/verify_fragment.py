"""Checking the files of a fragment against what the manifest says about them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.operations.verify_file import check_size, read_all_rows
from lance_core.scan.stored_rows import open_stored_rows
from lance_core.schema.blobs import described
from lance_core.table.naming import data_file_path
from lance_core.table.row_id_index import row_id_index
from lance_core.table.stored_lineage import (
    created_at_versions,
    last_updated_at_versions,
    row_ids_of,
)

if TYPE_CHECKING:
    from lance_core.operations.verify_finding import Findings
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import DataFile, Fragment
    from lance_core.table.snapshot import Snapshot

_OTHER_2_0 = (0, 3)
"""How some writers spell the version of 2.0 files."""


class FragmentChecker:
    """Checks fragments of any number of versions; files that these share are read once.

    Parameters
    ----------
    files
        Opens files.
    findings
        Takes what is wrong.
    """

    def __init__(self, files: TableFiles, findings: Findings) -> None:
        self._files = files
        self._findings = findings
        self._is_read: dict[tuple[str, str], bool] = {}
        self._checked: set[tuple[bytes, bytes]] = set()

    def check(self, snapshot: Snapshot) -> None:
        """Check all fragments of a version."""
        message = snapshot.manifest.message
        schema = b"".join(field.SerializeToString() for field in message.fields)
        for fragment, each in zip(snapshot.fragments, message.fragments, strict=True):
            key = (each.SerializeToString(), schema)
            if key not in self._checked:
                self._checked.add(key)
                self._check(snapshot, fragment)
        if snapshot.has_stable_row_ids:
            self._check_lineage(snapshot)

    def _check(self, snapshot: Snapshot, fragment: Fragment) -> None:
        path = snapshot.manifest.path
        with self._findings.of(path):
            self._files.deleted(snapshot, fragment)
        are_sound = [self._is_sound(snapshot, each) for each in fragment.data_files]
        if all(are_sound):
            with self._findings.of(path):
                fields = [described(field) for field in snapshot.schema.fields]
                rows = open_stored_rows(self._files, snapshot, fragment, fields)
                # that the bytes can be read is known; this is about the types of the table
                rows.read([(0, min(fragment.physical_rows, 1))])

    def _is_sound(self, snapshot: Snapshot, data_file: DataFile) -> bool:
        """Check a data file, and read it unless that was done before."""
        path = data_file_path(data_file.path)
        if not self._findings.sound(path, partial(self._compare, snapshot, data_file)):
            return False
        key = snapshot.data_place(data_file).key
        if key not in self._is_read:
            reader = self._files.reader(snapshot, data_file)
            self._is_read[key] = self._findings.sound(path, partial(read_all_rows, reader))
        return self._is_read[key]

    def _compare(self, snapshot: Snapshot, data_file: DataFile) -> None:
        """Compare a file with what the manifest says about it."""
        place = snapshot.data_place(data_file)
        check_size(place, data_file.size)
        reader = self._files.reader(snapshot, data_file)
        number = (data_file.major_version, data_file.minor_version)
        stated = "2.0" if number == _OTHER_2_0 else f"{number[0]}.{number[1]}"
        if reader.version.value != stated:
            raise CorruptFileError(
                place.path, f"is of version {reader.version.value}, the manifest says {stated}"
            )
        column = max(data_file.columns.values(), default=-1)
        if column >= reader.num_columns:
            raise CorruptFileError(
                place.path, f"has {reader.num_columns} columns, the manifest names column {column}"
            )

    def _check_lineage(self, snapshot: Snapshot) -> None:
        """Check ids and versions of rows, whose sequences are read from files if they lie there."""
        path, manifest = snapshot.manifest.path, snapshot.manifest
        for fragment in snapshot.fragments:
            with self._findings.of(path):
                offsets = np.arange(fragment.physical_rows)
                ids = row_ids_of(self._files, snapshot, fragment).at(offsets)
                self._findings.expect(
                    len(ids) == 0 or int(ids.max()) < manifest.next_row_id,
                    path,
                    f"fragment {fragment.id} has row id {ids.max(initial=0)}, the next new one is"
                    f" {manifest.next_row_id}",
                )
                for versions in (created_at_versions, last_updated_at_versions):
                    found = versions(self._files, snapshot, fragment)
                    newest = 0 if found is None else int(found.versions.max(initial=0))
                    self._findings.expect(
                        newest <= manifest.version,
                        path,
                        f"a row of fragment {fragment.id} is of version {newest}, which is newer",
                    )
        with self._findings.of(path):
            row_id_index(self._files, snapshot)
