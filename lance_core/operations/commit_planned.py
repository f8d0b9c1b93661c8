"""Committing what was computed from one version, and computing it anew when others came first."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import CommitConflictError, LanceError
from lance_core.operations.data_files import discard
from lance_core.table.commit import commit
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import Append, Merge, Overwrite, Transaction, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot
    from lance_core.table.transaction import Operation

    Plan = Callable[[Snapshot], Operation | None]
    """Writes what an operation needs, for the rows of one version, and returns the operation; None
    where nothing has to be done."""

_MAX_PLANS = 20
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 1.0


def commit_planned(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Commit an operation; do its work anew on the newest version where a conflict asks for that.

    Parameters
    ----------
    snapshot
        The version that the caller sees, from which the operation is computed first.
    plan
        Called again after a conflict; it may return files that it had written before.

    Returns
    -------
    Snapshot
        The version that was committed; the one planned for where nothing had to be done.

    Raises
    ------
    CommitConflictError
        A conflict that no new work can solve, or conflicts again and again. Data files that the
        operation brought are gone then.
    LanceError
        Whatever ``plan`` raises, and what `commit` raises besides.
    """
    store = snapshot.scheduler.store
    written: set[str] = set()
    for number in count(1):
        try:
            operation = plan(snapshot)
        except LanceError:
            discard(store, written)
            raise
        before, written = written, new_files(operation, snapshot)
        discard(store, before - written)
        if operation is None:
            return snapshot
        try:
            return commit(
                snapshot.scheduler,
                Transaction(snapshot.version, operation),
                open_base=snapshot.open_base,
            )
        except CommitConflictError as error:
            if not error.is_retryable or number == _MAX_PLANS:
                discard(store, written)
                raise
        _pause(number)
        snapshot = open_snapshot(snapshot.scheduler, None, snapshot.open_base)
    raise AssertionError  # the loop ends by its returns only


def _pause(number: int) -> None:
    """Let the others finish: a random time, the longer the more plans have failed."""
    longest = min(_FIRST_PAUSE_S * 2**number, _LONGEST_PAUSE_S)
    time.sleep(np.random.default_rng().uniform(0, longest))


def new_files(operation: Operation | None, snapshot: Snapshot) -> set[str]:
    """Return the data files of an operation's fragments that a version does not have."""
    known = {
        file.path for fragment in snapshot.manifest.message.fragments for file in fragment.files
    }
    return {file.path for fragment in _fragments(operation) for file in fragment.files} - known


def _fragments(operation: Operation | None) -> Iterator[table_pb2.DataFragment]:
    if isinstance(operation, Append | Overwrite | Merge):
        yield from operation.fragments
    elif isinstance(operation, Update):
        yield from operation.new_fragments
        yield from operation.updated_fragments
