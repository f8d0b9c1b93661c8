"""Removing old versions, and the files that nothing needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError, ObjectNotFoundError
from lance_core.io.deleting import delete_all
from lance_core.io.store import KeepsFolders, LeavesUnfinished
from lance_core.io.waiting import for_each
from lance_core.operations.cleanup_plan import (
    FOLDERS,
    SEGMENT_FOLDER,
    CleanupOptions,
    FileKind,
    RemovedFile,
    Writers,
    oldest_watermark,
    protected_versions,
    select_files,
    select_unfinished,
    select_versions,
)
from lance_core.operations.cleanup_references import all_referenced
from lance_core.table.manifest import check_supported, read_manifest
from lance_core.table.naming import INDICES_FOLDER, is_detached
from lance_core.table.versions import list_manifests
from lance_core.table.writer_flags import check_writable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectMeta, ObjectStore
    from lance_core.table.manifest import Manifest
    from lance_core.table.snapshot import Snapshot
    from lance_core.table.versions import ManifestLocation

    History = list[tuple[ManifestLocation, Manifest]]

_DEFAULTS = CleanupOptions()
_NOBODY = Writers()


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What was removed, or would be.

    Parameters
    ----------
    versions
        Numbers of the versions, ascending.
    files
        All files, manifests included.
    """

    versions: tuple[int, ...]
    files: tuple[RemovedFile, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.num_bytes for file in self.files)

    def num_files(self, kind: FileKind) -> int:
        """Return how many files of a kind there are."""
        return sum(file.kind is kind for file in self.files)


def clean_up(
    snapshot: Snapshot,
    refs: ObjectStore,
    branch: str | None,
    options: CleanupOptions = _DEFAULTS,
    *,
    writers: Writers = _NOBODY,
    num_threads: int | None = None,
    dry_run: bool = False,
) -> CleanupReport:
    """Remove old versions with all files that only they need, and what failed writers left.

    Safe beside other writers, also those of pylance: the newest version stays, and files that no
    version names stay until they are 7 days old, since somebody may be about to name them.
    Manifests go first, so that a version that is there is complete whenever the work stops; files
    that are left over then count as left by a failed writer.

    Parameters
    ----------
    snapshot
        A version of the dataset, or of the branch, to clean up; it stays.
    refs
        Root of the main branch, where tags and branches are recorded.
    branch
        The branch that the snapshot is of, None for the main one.
    options
        Which versions.
    writers
        What is known of writers besides what the dataset says.
    num_threads
        Files of a store that waits to delete at the same time; None = as many as are read so.
    dry_run
        Tell what would be removed, and remove nothing.

    Returns
    -------
    CleanupReport
        Versions and files.

    Raises
    ------
    InvalidRequestError
        Tagged versions are in the way, or a version is asked for that is not there.
    UnsupportedFeatureError
        Some version has a feature that this release lacks, so that nobody can tell what it needs.
        Nothing was removed.
    CorruptFileError
        A manifest cannot be read. Nothing was removed.

    Notes
    -----
    Lance table format, section "Cleanup"; compared with pylance 14.0.2, which however removes files
    of detached versions after 7 days: here those keep what they name. Clones at other places do not
    keep the files of their source.
    """
    scheduler = snapshot.scheduler
    now = datetime.now(UTC)
    history = _read_history(scheduler, ())
    _check_newest(history)
    tagged, points = protected_versions(refs, branch)
    stay = {*points, snapshot.version, *_gone_on_from(history, writers)}
    old = select_versions(history, options, stay, now)
    in_the_way = sorted(name for each in old for name in tagged.get(each.version, ()))
    if options.error_if_tagged and len(in_the_way) > 0:
        raise InvalidRequestError(
            f"versions to be removed are tagged: {', '.join(in_the_way)}; delete the tags, or keep"
            " their versions by error_if_tagged=False"
        )
    old = [each for each in old if each.version not in tagged]
    work = _Cleanup(scheduler, options, writers, num_threads, now)
    return work.remove(history, old, dry_run=dry_run)


def _gone_on_from(history: History, writers: Writers) -> list[int]:
    """Return the versions from which streams and jobs go on."""
    config = _newest(history).message.config
    needed = [oldest_watermark(config), writers.oldest_version]
    oldest = min((each for each in needed if each is not None), default=None)
    if oldest is None:
        return []
    return [location.version for location, _ in history if location.version >= oldest]


@dataclass(frozen=True, slots=True)
class _Cleanup:
    """What is removed of a dataset, and how."""

    scheduler: RangeScheduler
    options: CleanupOptions
    writers: Writers
    num_threads: int | None
    now: datetime

    def remove(
        self, history: History, old: Sequence[ManifestLocation], *, dry_run: bool
    ) -> CleanupReport:
        """Remove old versions, and then the files that no other one names."""
        store, gone = self.scheduler.store, {each.version for each in old}
        kept = [manifest for location, manifest in history if location.version not in gone]
        removed = [manifest for location, manifest in history if location.version in gone]
        needed = all_referenced(kept, store.uri)
        needed_before = all_referenced(removed, store.uri)
        objects = _list_files(store)
        manifests = [
            RemovedFile(each.meta.path, FileKind.MANIFEST, each.meta.size) for each in reversed(old)
        ]
        if not dry_run:
            self._delete(manifests)
            known = {location.version for location, _ in history}
            since = [manifest for _, manifest in _read_history(self.scheduler, known)]
            needed |= all_referenced(since, store.uri)
        options, writers, now = self.options, self.writers, self.now
        files = list(select_files(objects, needed, needed_before, options, writers, now))
        files += select_unfinished(_list_unfinished(store), options, writers, now)
        if not dry_run:
            self._delete(files)
            _remove_folders(store, files, options, writers)
        return CleanupReport(tuple(sorted(gone)), (*manifests, *files))

    def _delete(self, files: Sequence[RemovedFile]) -> None:
        delete_all(self.scheduler.store, [each.path for each in files], self.num_threads)


def _read_history(scheduler: RangeScheduler, known: Collection[int]) -> History:
    """Read all versions but those known; what is removed meanwhile is left out."""
    locations = [each for each in list_manifests(scheduler.store) if each.version not in known]
    found = for_each(scheduler.store, partial(_read, scheduler), locations)
    return [
        (location, manifest)
        for location, manifest in zip(locations, found, strict=True)
        if manifest is not None
    ]


def _read(scheduler: RangeScheduler, location: ManifestLocation) -> Manifest | None:
    try:
        return read_manifest(scheduler, location.meta)
    except ObjectNotFoundError:
        return None


def _check_newest(history: History) -> None:
    newest = _newest(history)
    check_supported(newest)
    check_writable(newest.message, newest.path)


def _newest(history: History) -> Manifest:
    return max(
        (manifest for _, manifest in history if not is_detached(manifest.version)),
        key=attrgetter("version"),
    )


def _list_files(store: ObjectStore) -> list[ObjectMeta]:
    return [meta for folder in FOLDERS for meta in store.list_tree(folder)]


def _list_unfinished(store: ObjectStore) -> list[ObjectMeta]:
    if not isinstance(store, LeavesUnfinished):
        return []
    return [meta for folder in FOLDERS for meta in store.list_unfinished(folder)]


def _remove_folders(
    store: ObjectStore, files: Sequence[RemovedFile], options: CleanupOptions, writers: Writers
) -> None:
    """Remove folders of segments that have become empty; object stores have none.

    One that was empty before may be that of a segment whose first file is about to come.
    """
    if not isinstance(store, KeepsFolders):
        return
    folders = {found[0] for file in files if (found := SEGMENT_FOLDER.match(file.path)) is not None}
    if options.delete_unverified and not writers.are_at_work:
        names = store.list_folder(INDICES_FOLDER)[0]
        every = (f"{INDICES_FOLDER}/{name}" for name in names)
        folders |= {each for each in every if SEGMENT_FOLDER.fullmatch(each) is not None}
    for each in folders:
        store.remove_folder(each)
