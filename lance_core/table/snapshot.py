"""One version of a dataset, opened: what every query runs on from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, ObjectNotFoundError, VersionNotFoundError
from lance_core.io.waiting import for_each
from lance_core.table.base_paths import Place, check_absolute, refuse_base
from lance_core.table.manifest import Manifest, check_supported, read_manifest
from lance_core.table.naming import DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER, is_detached
from lance_core.table.versions import ManifestLocation, find_manifest, list_manifests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from lance_core.ids import FragmentId
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectMeta
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.base_paths import OpenBase
    from lance_core.table.fragment import DataFile, DeletionFile, Fragment
    from lance_core.table.index_metadata import IndexMetadata


@dataclass(frozen=True, eq=False, slots=True)
class Snapshot:
    """An immutable version of a dataset, and the means to read its files.

    ``incarnation`` identifies these very bytes in cache keys: store, version, and the e-tag of the
    manifest (size and time where the store has none), so that a dataset deleted and made anew at
    the same place is another one. ``open_base`` gives the means to read other datasets' files.
    """

    scheduler: RangeScheduler
    incarnation: str
    manifest: Manifest
    open_base: OpenBase = refuse_base

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.manifest.version

    @property
    def schema(self) -> LanceSchema:
        """Field tree of the table."""
        return self.manifest.schema

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """Fragments in the order of the manifest, which is the order of a scan."""
        return self.manifest.fragments

    @property
    def fragments_by_id(self) -> Mapping[FragmentId, Fragment]:
        """Fragments by id."""
        return self.manifest.fragments_by_id

    @property
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index segments, system entries included."""
        return self.manifest.indices

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows have ids that stay when they move; else their addresses are their ids."""
        return self.manifest.has_stable_row_ids

    def data_place(self, data_file: DataFile) -> Place:
        """Return where a data file lies; errors as `deletion_place`."""
        return self._folder(data_file.base_id, DATA_FOLDER).below(data_file.path)

    def deletion_place(self, fragment_id: FragmentId, deletion_file: DeletionFile) -> Place:
        """Return where the deletion file of a fragment lies.

        Raises
        ------
        CorruptFileError
            The manifest has no such base path.
        UnsupportedFeatureError
            The base path may not or cannot be read.
        """
        folder = self._folder(deletion_file.base_id, DELETIONS_FOLDER)
        return folder.below(deletion_file.file_name(fragment_id))

    def index_place(self, segment: IndexMetadata) -> Place:
        """Return the folder of a segment's files; errors as `deletion_place`."""
        return self._folder(segment.base_id, f"{INDICES_FOLDER}/{segment.uuid}")

    def _folder(self, base_id: int | None, folder: str) -> Place:
        if base_id is None:
            return Place(self.scheduler, folder)
        base = self.manifest.base_paths.get(base_id)
        if base is None:
            raise CorruptFileError(self.manifest.path, f"there is no base path {base_id}")
        check_absolute(base, self.manifest.path)
        return Place(self.open_base(base.path), folder if base.is_dataset_root else "")


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """One entry of a dataset's history; ``manifest_path`` is relative to the root."""

    version: int
    timestamp: datetime
    manifest_path: str
    manifest_size: int
    e_tag: str | None


def open_snapshot(
    scheduler: RangeScheduler, version: int | None = None, open_base: OpenBase = refuse_base
) -> Snapshot:
    """Open a version of the dataset at the root of the scheduler's store.

    Reads the manifest and nothing else: one listing, then one request of at most 64 KiB (up to
    three for large manifests, see ``read_manifest``).

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset.
    version
        Version number, which may be a detached one; None = the latest.
    open_base
        Gives the means to read files of other datasets, when one is needed.

    Raises
    ------
    DatasetNotFoundError, VersionNotFoundError
        There is no such dataset or version.
    CorruptFileError
        The manifest contradicts the format, or two naming schemes are mixed.
    UnsupportedFeatureError
        Reading the dataset needs a feature that this release lacks.
    """
    return open_listed(scheduler, find_manifest(scheduler.store, version), open_base)


def open_listed(
    scheduler: RangeScheduler, location: ManifestLocation, open_base: OpenBase = refuse_base
) -> Snapshot:
    """Open a version that a listing has found; otherwise as `open_snapshot`."""
    try:
        manifest = read_manifest(scheduler, location.meta)
    except ObjectNotFoundError as error:
        raise VersionNotFoundError(
            f"version {location.version} was removed while it was opened"
        ) from error
    if manifest.version != location.version:
        raise CorruptFileError(
            location.meta.path, f"states version {manifest.version}, its name {location.version}"
        )
    check_supported(manifest)
    incarnation = _incarnation(scheduler.store.key, location)
    return Snapshot(scheduler, incarnation, manifest, open_base)


def list_versions(scheduler: RangeScheduler) -> list[VersionInfo]:
    """Describe all versions of the history, oldest first; reads every manifest."""
    return page_of_versions(scheduler)[0]


def page_of_versions(
    scheduler: RangeScheduler,
    after: int | None = None,
    limit: int | None = None,
    *,
    descending: bool = False,
) -> tuple[list[VersionInfo], bool]:
    """Describe versions that follow one, and tell whether there are more; reads their manifests."""
    history = [each for each in list_manifests(scheduler.store) if not is_detached(each.version)]
    if descending:
        history.reverse()
    if after is not None:
        history = [each for each in history if (each.version < after) == descending]
        history = [each for each in history if each.version != after]
    page = history[:limit]
    found = for_each(scheduler.store, partial(version_info, scheduler), page)
    return found, len(page) < len(history)


def version_info(scheduler: RangeScheduler, location: ManifestLocation) -> VersionInfo:
    """Describe one version; the time is that of the commit, or of the file if none is recorded."""
    meta = location.meta
    committed = read_manifest(scheduler, meta).timestamp
    timestamp = meta.last_modified if committed is None else committed
    return VersionInfo(location.version, timestamp, meta.path, meta.size, meta.e_tag)


def _incarnation(uri: str, location: ManifestLocation) -> str:
    return f"{uri}@{location.version}#{_identity(location.meta)}"


def _identity(meta: ObjectMeta) -> str:
    return f"{meta.size}-{meta.last_modified.timestamp()}" if meta.e_tag is None else meta.e_tag
