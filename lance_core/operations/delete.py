"""Deleting the rows that a predicate names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.found_rows import find_rows, write_deletions
from lance_core.table.transaction import Delete

if TYPE_CHECKING:
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def delete_rows(files: TableFiles, snapshot: Snapshot, predicate: str) -> Snapshot:
    """Delete rows; nothing but deletion files is written.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are judged first; the newest one after a conflict.
    predicate
        True for the rows to delete, see `lance_core.expr`. Where it is unknown, rows stay.

    Returns
    -------
    Snapshot
        A new version, also when there was no such row.

    Raises
    ------
    InvalidRequestError, TypeMismatchError
        As `find_rows`.
    """

    def plan(newest: Snapshot) -> Delete:
        deleted = write_deletions(files, newest, find_rows(files, newest, predicate))
        return Delete(deleted.updated_fragments, deleted.removed_fragment_ids, predicate)

    return commit_planned(snapshot, plan)
