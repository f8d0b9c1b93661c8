"""Epochs of a stream, each committed once, whatever stopped and began anew in between.

A commit says in its own transaction which epoch it holds, so that rows and the fact that they are
there come together. A watermark in the table's configuration says after which version an epoch has
to be looked for; cleanup keeps the versions after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    LanceError,
    VersionNotFoundError,
)
from lance_core.operations.append import check_still_fits
from lance_core.table.commit import commit
from lance_core.table.commits_since import Lineage
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import Append, MapUpdate, Overwrite, Transaction, UpdateConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.table.commits_since import Commit
    from lance_core.table.snapshot import Snapshot

KIND = "stream-ingest"
KIND_PROPERTY = "pipeline.kind"
ITEMS_PROPERTY = "pipeline.item_count"
QUERY_PROPERTY = "pipeline.stream.query_id"
EPOCH_PROPERTY = "pipeline.stream.epoch"
CHECKPOINT_PROPERTY = "pipeline.stream.checkpoint"

EPOCHS_PER_WATERMARK = 64
_MAX_ROUNDS = 20
_QUERY_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")


@dataclass(frozen=True, slots=True)
class Stream:
    """A query that sends epochs.

    Parameters
    ----------
    query_id
        Its name, which stays when the query starts again; letters, digits, ``.``, ``-``, ``_``.
    checkpoint
        Where it keeps how far it is; tells streams apart that were given one name by mistake.
        Empty where it is unknown.

    Raises
    ------
    InvalidRequestError
        That is no name.
    """

    query_id: str
    checkpoint: str = ""

    def __post_init__(self) -> None:
        if _QUERY_ID.fullmatch(self.query_id) is None:
            raise InvalidRequestError(
                f"queryId is {self.query_id!r}; give letters, digits, dots, dashes and underscores"
            )

    def key(self, name: str) -> str:
        """Return the key of the table's configuration that holds a fact about the stream."""
        return f"pipeline.stream.{self.query_id}.{name}"


@dataclass(frozen=True, slots=True)
class Watermark:
    """Epochs up to ``epoch`` need no look; commits of later ones came after ``version``."""

    epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an epoch.

    Parameters
    ----------
    watermark
        From which on later epochs can be looked for; to be handed on with the next epoch.
    version
        The version that was committed now, None if the epoch was there or brought nothing.
    """

    watermark: Watermark | None
    version: int | None = None


class _EpochIsThereError(LanceError):
    """Somebody committed the epoch before."""


def commit_epoch(
    snapshot: Snapshot,
    stream: Stream,
    number: int,
    operation: Append | Overwrite,
    *,
    num_items: int = 1,
    seen: Watermark | None = None,
) -> Outcome:
    """Commit what an epoch brings, unless it is there already.

    Safe to be called again after any crash, and by several drivers at once: the first one commits.

    Parameters
    ----------
    snapshot
        The version that the rows were written for.
    stream
        Whose epoch it is.
    number
        Its number, from 0 on; the ones before have been committed, or were empty.
    operation
        Fragments without ids. One that appends none does nothing.
    num_items
        How many tasks wrote them, for the record.
    seen
        Watermark of the outcome of an earlier epoch, to look at fewer commits.

    Raises
    ------
    InvalidRequestError
        Another stream has the name, which shows by its checkpoint; or columns became others while
        the rows were written.
    VersionNotFoundError
        Versions that may hold the epoch were removed, so that nobody can tell whether it is there.
    CommitConflictError
        The table was changed in a way that the rows cannot be put on top of; nothing is deleted.
    StoreError
        The store failed; the epoch may have been committed all the same, which the next call finds.
    """
    if isinstance(operation, Append) and len(operation.fragments) == 0:
        return Outcome(seen)
    epoch = _Epoch(snapshot, stream, number, operation, _properties(stream, number, num_items))
    for left in reversed(range(_MAX_ROUNDS)):
        try:
            return epoch.commit(seen)
        except CommitConflictError as error:
            if not error.is_retryable or left == 0:
                raise
            epoch.take_up()
    raise AssertionError  # the loop ends by its returns only


class _Epoch:
    """An epoch, to be committed as what was computed from version ``read_version``."""

    def __init__(
        self,
        snapshot: Snapshot,
        stream: Stream,
        number: int,
        operation: Append | Overwrite,
        properties: Mapping[str, str],
    ) -> None:
        self._snapshot = snapshot
        self._stream = stream
        self._number = number
        self._operation = operation
        self._properties = properties
        self._read_version = snapshot.version
        if isinstance(operation, Overwrite):
            self.take_up()

    def take_up(self) -> None:
        """Go on from the newest version, on which what was written must still make sense."""
        newest = _newest(self._snapshot)
        if isinstance(self._operation, Append):
            check_still_fits(self._snapshot.schema, newest.schema)
        self._read_version = newest.version

    def commit(self, seen: Watermark | None) -> Outcome:
        """Commit it, unless it is there."""
        stream, number = self._stream, self._number
        newest, mark = _with_watermark(_newest(self._snapshot), stream, number)
        start = _start(mark, seen, number, newest.version)
        if number <= mark.epoch:
            return Outcome(start)
        transaction = Transaction(self._read_version, self._operation, properties=self._properties)
        check = partial(_check, stream, number)
        try:
            _look_through(newest, start.version, stream, number)
            made = commit(newest.scheduler, transaction, check=check, open_base=newest.open_base)
        except _EpochIsThereError:
            return Outcome(start)
        reached = Watermark(number, made.version)
        if number - mark.epoch >= EPOCHS_PER_WATERMARK:
            _advance(made, stream, reached)
        return Outcome(reached, made.version)


def watermark_of(config: Mapping[str, str], stream: Stream) -> Watermark | None:
    """Return what a table's configuration says of a stream, None if nothing.

    Raises
    ------
    InvalidRequestError
        The stream of the name has another checkpoint, or a value is no number.
    """
    epoch, version = config.get(stream.key("epoch")), config.get(stream.key("version"))
    if epoch is None or version is None:
        return None
    _check_checkpoint(stream, config.get(stream.key("checkpoint"), ""))
    try:
        return Watermark(int(epoch), int(version))
    except ValueError:
        raise InvalidRequestError(
            f"the table's configuration says epoch {epoch!r} and version {version!r} of stream"
            f" {stream.query_id}; both are numbers"
        ) from None


def _properties(stream: Stream, number: int, num_items: int) -> dict[str, str]:
    return {
        KIND_PROPERTY: KIND,
        ITEMS_PROPERTY: str(num_items),
        QUERY_PROPERTY: stream.query_id,
        EPOCH_PROPERTY: str(number),
        CHECKPOINT_PROPERTY: stream.checkpoint,
    }


def _newest(snapshot: Snapshot) -> Snapshot:
    return open_snapshot(snapshot.scheduler, None, snapshot.open_base)


def _with_watermark(newest: Snapshot, stream: Stream, number: int) -> tuple[Snapshot, Watermark]:
    """Return the watermark of a stream; write one before its first epoch.

    Without it nobody could tell how far back that epoch may lie, should its commit be repeated.
    """
    mark = watermark_of(newest.manifest.config, stream)
    if mark is not None:
        return newest, mark
    first = Watermark(number - 1, newest.version)
    try:
        return _write(newest, stream, first), first
    except CommitConflictError:
        newest = _newest(newest)
        mark = watermark_of(newest.manifest.config, stream)
        if mark is None:
            raise
        return newest, mark


def _advance(made: Snapshot, stream: Stream, reached: Watermark) -> None:
    try:
        _write(made, stream, reached)
    except CommitConflictError:
        return  # another driver moved it, or the next epoch will


def _write(snapshot: Snapshot, stream: Stream, mark: Watermark) -> Snapshot:
    entries = {
        stream.key("epoch"): str(mark.epoch),
        stream.key("version"): str(mark.version),
        stream.key("checkpoint"): stream.checkpoint,
    }
    transaction = Transaction(
        snapshot.version,
        UpdateConfig(config=MapUpdate(entries)),
        properties={KIND_PROPERTY: KIND},
    )
    return commit(snapshot.scheduler, transaction, open_base=snapshot.open_base)


def _start(mark: Watermark, seen: Watermark | None, number: int, newest: int) -> Watermark:
    """Choose where to begin to look; what was seen may be of a table that is no more."""
    if seen is None or seen.epoch >= number or not mark.version <= seen.version <= newest:
        return mark
    return seen


def _look_through(newest: Snapshot, after: int, stream: Stream, number: int) -> None:
    lineage = Lineage(newest.scheduler)
    lineage.refresh()
    try:
        commits = lineage.commits_after(after)
    except CommitConflictError as error:
        raise VersionNotFoundError(
            f"version {error.version} was removed, so nobody can tell whether epoch {number} of"
            f" stream {stream.query_id} is in {newest.scheduler.store.uri}; look for its rows, then"
            f" set {stream.key('version')} in the table's configuration to {newest.version}, and"
            f" {stream.key('epoch')} to {number} if they are there"
        ) from error
    for each in reversed(commits):
        _check(stream, number, each)


def _check(stream: Stream, number: int, theirs: Commit) -> None:
    properties = theirs.transaction.properties
    if properties.get(QUERY_PROPERTY) != stream.query_id:
        return
    _check_checkpoint(stream, properties.get(CHECKPOINT_PROPERTY, ""))
    if properties.get(EPOCH_PROPERTY) == str(number):
        raise _EpochIsThereError


def _check_checkpoint(stream: Stream, other: str) -> None:
    if "" not in (stream.checkpoint, other) and stream.checkpoint != other:
        raise InvalidRequestError(
            f"stream {stream.query_id} has its checkpoint at {other}, not at {stream.checkpoint};"
            f" two queries cannot share a queryId. If the checkpoint was moved, set"
            f" {stream.key('checkpoint')} in the table's configuration"
        )
