"""Which versions are old, and which files nobody needs any more."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.operations.cleanup_references import key_of
from lance_core.table.naming import (
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
    VERSIONS_FOLDER,
    is_detached,
)
from lance_core.table.refs import MAIN_BRANCH, list_branches, list_tags

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from lance_core.io.store import ObjectMeta, ObjectStore
    from lance_core.table.manifest import Manifest
    from lance_core.table.versions import ManifestLocation

STREAM_PREFIX, VERSION_SUFFIX = "pipeline.stream.", ".version"
"""Keys of the configuration between which a stream writes its id: from that version on it looks for
what it has committed."""

_DEFAULT_AGE = timedelta(days=14)
_UNVERIFIED_AGE = timedelta(days=7)
"""Files of writers still under way are younger: whoever takes longer loses what he wrote."""

_ORPHAN_AGE = timedelta(hours=1)
"""Files of which somebody knows that nobody will name them may be younger."""


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """Which versions to remove.

    Parameters
    ----------
    older_than
        Only versions committed longer ago than this; without any of the three it is 14 days.
    retain_versions
        Only versions before the last so many.
    versions
        Only these.
    delete_unverified
        Remove files that no version names whatever their age, not only after 7 days. Nobody else
        may be writing then: what is written but not committed yet is named by no version.
    error_if_tagged
        Refuse to run where a tagged version would be removed otherwise; False keeps it silently.

    Raises
    ------
    InvalidRequestError
        No version would be retained, or a limit is of another type.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: Sequence[int] | None = None
    delete_unverified: bool = False
    error_if_tagged: bool = True

    def __post_init__(self) -> None:
        age, retained = self.older_than, self.retain_versions
        if age is not None and not isinstance(age, timedelta):
            raise InvalidRequestError(f"older_than is {age!r}; give a datetime.timedelta")
        if age is not None and age < timedelta(0):
            raise InvalidRequestError(f"older_than is {age}; versions are not committed later")
        if retained is not None and not _is_count(retained):
            raise InvalidRequestError(
                f"retain_versions is {retained!r}; at least the newest one stays, give 1 or more"
            )
        if self.versions is not None and not _are_numbers(self.versions):
            raise InvalidRequestError(f"versions are {self.versions!r}; give a list of numbers")

    @property
    def age(self) -> timedelta | None:
        """Age from which versions are old, None where something else says which ones are."""
        limits = (self.older_than, self.retain_versions, self.versions)
        return _DEFAULT_AGE if limits == (None, None, None) else self.older_than


@dataclass(frozen=True, slots=True)
class Writers:
    """What is known of writers from elsewhere, such as from the journal of a pipeline.

    Parameters
    ----------
    oldest_version
        Versions from this one on stay, as somebody may go on from it; None = nobody does.
    pending
        Keys (see `key_of`) of files that somebody may be about to name: they stay whatever age.
    orphans
        Keys of files that nobody is going to name: they go after an hour, not after 7 days.
    are_at_work
        Whether somebody may be writing files that are not told yet, so that none goes before 7
        days, also where that was asked for.
    """

    oldest_version: int | None = None
    pending: frozenset[str] = frozenset()
    orphans: frozenset[str] = frozenset()
    are_at_work: bool = False


class FileKind(enum.StrEnum):
    """What a removed file was."""

    MANIFEST = "manifest"
    DATA = "data"
    DELETION = "deletion"
    INDEX = "index"
    TRANSACTION = "transaction"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A file to be removed, or that was."""

    path: str
    kind: FileKind
    num_bytes: int


_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
SEGMENT_FOLDER = re.compile(rf"{INDICES_FOLDER}/{_UUID}")
"""How folders of index segments are called."""

_KINDS = (
    (FileKind.DATA, re.compile(rf"{DATA_FOLDER}/(?:.+\.lance|.+/[^/]+\.blob)")),
    (FileKind.DELETION, re.compile(rf"{DELETIONS_FOLDER}/[^/]+\.(?:arrow|bin)")),
    (FileKind.INDEX, re.compile(rf"{SEGMENT_FOLDER.pattern}/.+")),
    (FileKind.TRANSACTION, re.compile(r"_transactions/[^/]+\.txn")),
    (FileKind.TEMPORARY, re.compile(rf"{VERSIONS_FOLDER}/\.tmp[^/]*")),
)
FOLDERS = (DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER, "_transactions", VERSIONS_FOLDER)
"""Where files are looked for; unknown names in them are left alone, as is all the rest."""


def select_versions(
    history: Sequence[tuple[ManifestLocation, Manifest]],
    options: CleanupOptions,
    protected: Collection[int],
    now: datetime,
) -> list[ManifestLocation]:
    """Choose the versions to remove.

    Parameters
    ----------
    history
        All versions, oldest first; detached ones are outside the history and stay.
    options
        What is wanted. Where several limits are given, a version has to be beyond all of them.
    protected
        Versions that stay in any case.
    now
        The time.

    Raises
    ------
    InvalidRequestError
        A version is asked for by its number that is not there.
    """
    newest_first = [each for each in reversed(history) if not is_detached(each[0].version)]
    num_retained = 1 if options.retain_versions is None else options.retain_versions
    beyond = newest_first[num_retained:]
    if options.versions is not None:
        wanted = set(options.versions)
        unknown = wanted - {location.version for location, _ in newest_first}
        if unknown:
            raise InvalidRequestError(f"there is no version {min(unknown)} to remove")
        beyond = [each for each in beyond if each[0].version in wanted]
    age = options.age
    return [
        location
        for location, manifest in beyond
        if location.version not in protected
        and (age is None or now - _time_of(location, manifest) > age)
    ]


def select_files(
    objects: Sequence[ObjectMeta],
    needed: Collection[str],
    needed_before: Collection[str],
    options: CleanupOptions,
    writers: Writers,
    now: datetime,
) -> Iterator[RemovedFile]:
    """Choose the files to remove, manifests aside.

    Parameters
    ----------
    objects
        All files in the folders of a dataset.
    needed
        Keys of the files that versions name which stay.
    needed_before
        Keys of those that removed versions name: theirs were committed, so that nobody is still
        about to name them.
    options
        Whether unverified files go too.
    writers
        What is known of who wrote files that no version names.
    now
        The time.
    """
    for meta in objects:
        kind = _kind_of(meta.path)
        key = key_of(meta.path)
        if kind is None or key in needed or key in writers.pending:
            continue
        is_orphan = key in writers.orphans and now - meta.last_modified > _ORPHAN_AGE
        if key in needed_before or is_orphan or _is_left(meta, options, writers, now):
            yield RemovedFile(meta.path, kind, meta.size)


def select_unfinished(
    parts: Sequence[ObjectMeta], options: CleanupOptions, writers: Writers, now: datetime
) -> Iterator[RemovedFile]:
    """Choose what killed writers left of files; other parameters as `select_files`."""
    for meta in parts:
        if _is_left(meta, options, writers, now):
            yield RemovedFile(meta.path, FileKind.TEMPORARY, meta.size)


def protected_versions(
    refs: ObjectStore, branch: str | None
) -> tuple[dict[int, list[str]], set[int]]:
    """Return the versions that names keep alive.

    Parameters
    ----------
    refs
        Root of the main branch, where tags and branches are recorded.
    branch
        The branch that is cleaned up, None for the main one.

    Returns
    -------
    tagged
        Names of the tags of each tagged version.
    branch_points
        Versions that branches began with: their files lie here.
    """
    own = None if branch == MAIN_BRANCH else branch
    tagged: dict[int, list[str]] = {}
    for tag in list_tags(refs):
        if _plain(tag.branch) == own:
            tagged.setdefault(tag.version, []).append(tag.name)
    points = {
        each.parent_version for each in list_branches(refs) if _plain(each.parent_branch) == own
    }
    return tagged, points


def oldest_watermark(config: Mapping[str, str]) -> int | None:
    """Return the oldest version that a stream of the pipeline still looks into.

    Streams that go on after a failure look for their last commits from there on; without them they
    could not tell what they have written already.

    Parameters
    ----------
    config
        Of the newest version.

    Raises
    ------
    InvalidRequestError
        What the configuration says is no version; names the key.
    """
    found: list[int] = []
    for key, value in config.items():
        if not (key.startswith(STREAM_PREFIX) and key.endswith(VERSION_SUFFIX)):
            continue
        if not (value.isascii() and value.isdecimal()):
            raise InvalidRequestError(
                f"{key} is {value!r} in the configuration, which is no version; delete the key if"
                " the stream is over"
            )
        found.append(int(value))
    return min(found, default=None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 1


def _are_numbers(versions: object) -> bool:
    return isinstance(versions, list | tuple | range) and all(
        isinstance(each, int) for each in versions
    )


def _is_left(meta: ObjectMeta, options: CleanupOptions, writers: Writers, now: datetime) -> bool:
    """Tell whether nobody is about to name a file that no version names."""
    goes_at_once = options.delete_unverified and not writers.are_at_work
    return goes_at_once or now - meta.last_modified > _UNVERIFIED_AGE


def _plain(branch: str | None) -> str | None:
    return None if branch == MAIN_BRANCH else branch


def _time_of(location: ManifestLocation, manifest: Manifest) -> datetime:
    committed = manifest.timestamp
    return location.meta.last_modified if committed is None else committed


def _kind_of(path: str) -> FileKind | None:
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(path)), None)
