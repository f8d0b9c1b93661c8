"""Versions outside the history: readable by their number, and never the newest."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from lance_core.table.base_paths import refuse_base
from lance_core.table.commits_since import Lineage
from lance_core.table.naming import FIRST_DETACHED, NamingScheme, manifest_path
from lance_core.table.next_version import Addition, NewDataset, next_version
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.snapshot import Snapshot, open_snapshot
from lance_core.table.transaction import transaction_path
from lance_core.table.transaction_to_proto import transaction_to_bytes

if TYPE_CHECKING:
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.table.base_paths import OpenBase
    from lance_core.table.transaction import Transaction


def commit_detached(
    scheduler: RangeScheduler, transaction: Transaction, *, open_base: OpenBase = refuse_base
) -> Snapshot:
    """Commit a transaction on top of the version it read, beside the history.

    Nothing can conflict with it. No rewrite that leaves indices to the reuse history can be
    committed so.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset; its store is written to.
    transaction
        What to commit; not a restore.
    open_base
        Gives the means to read files of other datasets, for the snapshot returned.

    Returns
    -------
    Snapshot
        The version, whose number is random.

    Raises
    ------
    VersionNotFoundError
        The version that the transaction read is not there.
    UnsupportedFeatureError, InvalidRequestError
        As `commit`.

    Notes
    -----
    Lance table format, section "Detached commits"; verified against pylance 14.0.2.
    """
    lineage = Lineage(scheduler)
    lineage.refresh()
    base = lineage.writable(transaction.read_version)
    version = FIRST_DETACHED | secrets.randbits(63)
    addition = Addition(fold=reuse_of(scheduler, base).fold)
    data = next_version(base, transaction, version, addition, NewDataset())
    store = scheduler.store
    store.put(transaction_path(transaction.file_name), transaction_to_bytes(transaction))
    store.put_if_absent(manifest_path(version, NamingScheme.DETACHED), data)
    return open_snapshot(scheduler, version, open_base)
