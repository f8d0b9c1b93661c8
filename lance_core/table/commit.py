"""Publishing a transaction as the next version of a dataset."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lance_core.errors import (
    CommitConflictError,
    ObjectExistsError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
    VersionNotFoundError,
)
from lance_core.table.base_paths import refuse_base
from lance_core.table.commits_since import Lineage
from lance_core.table.conflict_rules import Side, Verdict
from lance_core.table.conflicts import verdict
from lance_core.table.flags import Feature
from lance_core.table.naming import NamingScheme, manifest_path
from lance_core.table.next_version import Addition, NewDataset, next_version
from lance_core.table.rebase import Ground, needs_ground, rebase
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.snapshot import Snapshot, open_snapshot
from lance_core.table.transaction import Restore, Transaction, transaction_path
from lance_core.table.transaction_to_proto import transaction_to_bytes
from lance_core.table.version_hint import write_version_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.proto import table_pb2
    from lance_core.table.base_paths import OpenBase
    from lance_core.table.commits_since import Commit
    from lance_core.table.manifest import Manifest
    from lance_core.table.reuse_history import ReuseHistory

    CommitCheck = Callable[[Commit], None]
    """Sees each commit that others made since a transaction read the dataset, oldest first, before
    the transaction is committed; raises if it must not be, whatever the rules of conflicts say."""

_NEW = NewDataset()
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.2


class ReuseWriter(Protocol):
    """Makes the entry of the reuse history for a deferred rewrite."""

    def __call__(self, newest: Manifest) -> table_pb2.IndexMetadata | None:
        """Return the newest entry with the rewrite added to it; None where nobody has to follow.

        Called at every attempt: the rewrite then takes part in the history as the version after
        ``newest``.
        """


def commit(
    scheduler: RangeScheduler,
    transaction: Transaction,
    *,
    new: NewDataset = _NEW,
    reuse: ReuseWriter | None = None,
    check: CommitCheck | None = None,
    open_base: OpenBase = refuse_base,
    max_attempts: int = 20,
) -> Snapshot:
    """Commit a transaction on top of the newest version.

    Whatever the transaction names was written before. When others committed since the version that
    it was computed from, it is rebased on what they did, if that is possible. A crash at any moment
    leaves the old version or the new one.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset; its store is written to.
    transaction
        What to commit. One with ``read_version`` 0 makes the dataset.
    new
        How to make the dataset, if the transaction does.
    reuse
        For a rewrite that leaves indices as they are, to be led through the reuse history.
    check
        Sees what others committed, besides the rules of conflicts. What it raises ends the commit.
    open_base
        Gives the means to read files of other datasets, for a rebase and for the snapshot returned.
    max_attempts
        How often to try when others publish first.

    Returns
    -------
    Snapshot
        The version that was committed.

    Raises
    ------
    CommitConflictError
        What others committed stands in the way, or they were faster at every attempt; it tells
        whether doing the work anew can help. Nothing was committed.
    UnsupportedFeatureError
        The dataset has features that this release does not write, or its store cannot create an
        object only where there is none.
    InvalidRequestError
        The transaction does not fit the dataset.
    StoreError
        The store failed, at every attempt where the fault was a passing one. The version may
        have been committed all the same.

    Notes
    -----
    Lance table format, section "Committing"; raced against pylance 14.0.2.
    """
    attempt = _Attempt(scheduler, transaction, new, reuse, check, open_base)
    for number in range(max_attempts):
        version = attempt.make()
        if version is not None:
            return open_snapshot(scheduler, version, open_base)
        _pause(number)
    if attempt.fault is not None:
        raise attempt.fault
    raise CommitConflictError(
        f"others were faster {max_attempts} times", version=attempt.checked, is_retryable=True
    )


class _Attempt:
    """A transaction, rebased on every version up to ``checked``; ``fault`` ended the last try."""

    def __init__(
        self,
        scheduler: RangeScheduler,
        transaction: Transaction,
        new: NewDataset,
        reuse: ReuseWriter | None,
        check: CommitCheck | None,
        open_base: OpenBase,
    ) -> None:
        self._scheduler = scheduler
        self._transaction = transaction
        self._new = new
        self._reuse = reuse
        self._check_theirs = _let_pass if check is None else check
        self._open_base = open_base
        self._lineage = Lineage(scheduler)
        self._written: bytes | None = None
        self.checked = transaction.read_version
        self.fault: StoreError | None = None

    def make(self) -> int | None:
        """Try once; return the version that was committed, None if others were faster.

        A passing fault of the store counts as being slower: the object may be there all the same,
        which the next attempt finds out by the transaction's UUID.
        """
        lineage = self._lineage
        lineage.refresh()
        commits = lineage.commits_after(self.checked)
        for each in commits:
            if each.transaction.uuid == self._transaction.uuid:
                return each.version
            self._check_theirs(each)
        newest = lineage.newest
        if newest is None:
            addition = Addition(fold=lambda coverage: coverage)
            return self._publish(None, 1, self._new.scheme, addition)
        base = lineage.writable(newest.version)
        history = reuse_of(self._scheduler, base)
        if commits:
            self._check(commits, history)
            if needs_ground(self._transaction.operation):
                self._rebase(commits, base, history)
            self.checked = base.version
        addition = Addition(
            fold=history.fold,
            restored=_restored(lineage, self._transaction),
            reuse_entry=None if self._reuse is None else self._reuse(base),
        )
        return self._publish(base, newest.version + 1, newest.scheme, addition)

    def _check(self, commits: Sequence[Commit], history: ReuseHistory) -> None:
        ours = Side(self._transaction.operation, self._reuse is not None)
        for each in commits:
            is_deferred = each.version - 1 in history.dataset_versions
            found = verdict(ours, Side(each.transaction.operation, is_deferred))
            if found in (Verdict.RETRY, Verdict.FAIL):
                theirs = type(each.transaction.operation).__name__
                raise CommitConflictError(
                    f"{type(ours.operation).__name__} after {theirs}",
                    version=each.version,
                    is_retryable=found is Verdict.RETRY,
                )

    def _rebase(self, commits: Sequence[Commit], base: Manifest, history: ReuseHistory) -> None:
        read_version = self._transaction.read_version
        try:
            read = self._lineage.manifest(read_version)
        except VersionNotFoundError as error:
            raise CommitConflictError(
                f"version {read_version}, which was read, is gone",
                version=base.version,
                is_retryable=True,
            ) from error
        newest = Snapshot(self._scheduler, "", base, self._open_base)  # nothing of it is cached
        ground = Ground(read, newest, history.fold)
        theirs = [each.transaction.operation for each in commits]
        self._transaction = rebase(self._transaction, theirs, ground)

    def _publish(
        self, base: Manifest | None, version: int, scheme: NamingScheme, addition: Addition
    ) -> int | None:
        store = self._scheduler.store
        data = next_version(base, self._transaction, version, addition, self._new)
        try:
            if not _has_no_files(base):
                self._write_transaction()
            store.put_if_absent(manifest_path(version, scheme), data)
        except ObjectExistsError:
            self.fault = None
            return None
        except (StoreThrottledError, StoreUnavailableError) as error:
            self.fault = error
            return None
        write_version_hint(store, version)
        return version

    def _write_transaction(self) -> None:
        """Write the file of the transaction, unless it is the one written at the attempt before."""
        data = transaction_to_bytes(self._transaction)
        if data != self._written:
            self._scheduler.store.put(transaction_path(self._transaction.file_name), data)
            self._written = data


def _let_pass(_: Commit) -> None:
    """Object to nothing."""


def _has_no_files(base: Manifest | None) -> bool:
    return base is not None and bool(base.flags.writer & Feature.NO_TRANSACTION_FILES)


def _restored(lineage: Lineage, transaction: Transaction) -> Manifest | None:
    operation = transaction.operation
    return lineage.manifest(operation.version) if isinstance(operation, Restore) else None


def _pause(number: int) -> None:
    """Wait a random time, the longer the more attempts failed."""
    longest = min(_FIRST_PAUSE_S * 2**number, _LONGEST_PAUSE_S)
    time.sleep(np.random.default_rng().uniform(0, longest))
