"""Trimming the Fragment Reuse Index: compactions that no index has to follow any more leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import CommitConflictError
from lance_core.table.commit import commit
from lance_core.table.reuse_of_version import reuse_of, trim_of
from lance_core.table.reuse_trim import growth
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import NO_PROPERTIES, Transaction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.table.reuse_trim import ReuseGrowth
    from lance_core.table.snapshot import Snapshot

_MAX_ROUNDS = 10


def trim_reuse_index(
    snapshot: Snapshot, *, properties: Mapping[str, str] = NO_PROPERTIES
) -> Snapshot:
    """Shorten the reuse history to what indices still need, or remove it.

    Parameters
    ----------
    snapshot
        The version to begin with; after a conflict the newest one is looked at.
    properties
        What the transaction says about itself.

    Returns
    -------
    Snapshot
        The version committed, or the one looked at where nothing can go.

    Raises
    ------
    CommitConflictError
        Others changed indices again and again.
    CorruptFileError
        The history contradicts the format.
    UnsupportedFeatureError
        It is tagged, or the dataset cannot be written.
    """
    for number in range(1, _MAX_ROUNDS + 1):
        trim = trim_of(snapshot.scheduler, snapshot.manifest)
        if trim is None:
            return snapshot
        try:
            return commit(
                snapshot.scheduler,
                Transaction(snapshot.version, trim, properties=properties),
                open_base=snapshot.open_base,
            )
        except CommitConflictError as error:
            if not error.is_retryable or number == _MAX_ROUNDS:
                raise
        snapshot = open_snapshot(snapshot.scheduler, None, snapshot.open_base)
    raise AssertionError  # the last round returns or raises


def reuse_growth(snapshot: Snapshot) -> ReuseGrowth:
    """Measure the reuse history of a version; errors as `trim_reuse_index`."""
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    return growth(history, snapshot.indices)
