"""What others have committed since a transaction read the dataset."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import (
    CommitConflictError,
    DatasetNotFoundError,
    InvalidRequestError,
    ObjectNotFoundError,
    VersionNotFoundError,
)
from lance_core.table.manifest import Manifest, check_supported, read_manifest
from lance_core.table.naming import is_detached, manifest_path
from lance_core.table.transaction_of_version import transaction_of
from lance_core.table.versions import ManifestLocation, list_manifests
from lance_core.table.writer_flags import check_writable

if TYPE_CHECKING:
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.table.transaction import Transaction

_TRUSTED_S = 10.0
"""Versions are removed when they are days old, not seconds."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version that somebody committed."""

    version: int
    transaction: Transaction


class Lineage:
    """The versions of a dataset, detached ones left out.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset, which need not exist yet.
    """

    def __init__(self, scheduler: RangeScheduler) -> None:
        self._scheduler = scheduler
        self._locations: dict[int, ManifestLocation] = {}
        self._listed_at = -math.inf

    def refresh(self) -> None:
        """Find out which versions there are now.

        Versions newer than those known are asked for one by one: while others commit all the time,
        a listing takes so long that it is old when it ends. Only after a listing of long ago might
        the version asked for be removed already, with newer ones behind it.
        """
        newest = self.newest
        if newest is None or time.monotonic() - self._listed_at > _TRUSTED_S:
            self._list()
            return
        store = self._scheduler.store
        while True:
            version = newest.version + 1
            try:
                meta = store.head(manifest_path(version, newest.scheme))
            except ObjectNotFoundError:
                break
            newest = ManifestLocation(version, newest.scheme, meta)
            self._locations[version] = newest

    def _list(self) -> None:
        self._listed_at = time.monotonic()
        try:
            locations = list_manifests(self._scheduler.store)
        except DatasetNotFoundError:
            locations = []
        self._locations = {
            each.version: each for each in locations if not is_detached(each.version)
        }

    @property
    def newest(self) -> ManifestLocation | None:
        """The newest version, None where there is no dataset."""
        return self._locations[max(self._locations)] if self._locations else None

    def manifest(self, version: int) -> Manifest:
        """Read a version.

        Raises
        ------
        VersionNotFoundError
            There is no such version, or it was removed meanwhile.
        """
        location = self._locations.get(version)
        if location is None:
            raise VersionNotFoundError(f"there is no version {version}")
        try:
            return read_manifest(self._scheduler, location.meta)
        except ObjectNotFoundError as error:
            raise VersionNotFoundError(f"version {version} was removed") from error

    def writable(self, version: int) -> Manifest:
        """Read a version to commit on top of.

        Raises
        ------
        UnsupportedFeatureError
            Reading or writing the dataset needs a feature that this release lacks.
        """
        manifest = self.manifest(version)
        check_supported(manifest)
        check_writable(manifest.message, manifest.path)
        return manifest

    def commits_after(self, version: int) -> list[Commit]:
        """Return what was committed after a version, oldest first.

        Raises
        ------
        InvalidRequestError
            ``version`` is newer than all there are.
        CommitConflictError
            A version in between was removed, so nobody can tell what it changed.
        """
        newest = max(self._locations, default=0)
        if version > newest:
            raise InvalidRequestError(f"version {version} was read, the newest is {newest}")
        return [self._commit(each) for each in range(version + 1, newest + 1)]

    def _commit(self, version: int) -> Commit:
        try:
            manifest = self.manifest(version)
        except VersionNotFoundError as error:
            raise CommitConflictError(
                "it was removed before it could be looked at", version=version, is_retryable=True
            ) from error
        meta = self._locations[version].meta
        return Commit(version, transaction_of(self._scheduler, manifest, meta))
