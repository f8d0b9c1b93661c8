"""Which versions a dataset has, and where their manifests lie."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, DatasetNotFoundError, VersionNotFoundError
from lance_core.file.arguments import checked_number
from lance_core.table.naming import (
    VERSIONS_FOLDER,
    NamingScheme,
    is_detached,
    parse_manifest_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.io.store import ObjectMeta, ObjectStore


@dataclass(frozen=True, slots=True)
class ManifestLocation:
    """One committed version and the object that holds its manifest."""

    version: int
    scheme: NamingScheme
    meta: ObjectMeta


def list_manifests(store: ObjectStore) -> list[ManifestLocation]:
    """List the manifests of a dataset, detached ones included, by ascending version.

    Raises
    ------
    DatasetNotFoundError
        The store holds no manifest.
    CorruptFileError
        V1 and V2 names lie side by side. The newest version is then ambiguous (a migration stopped
        half-way), and the reference refuses such a dataset too.
    """
    _, objects = store.list_folder(VERSIONS_FOLDER)
    locations = sorted(_parse(objects), key=attrgetter("version"))
    if not locations:
        raise DatasetNotFoundError(f"no dataset at {store.uri}: {VERSIONS_FOLDER}/ has no manifest")
    schemes = {location.scheme for location in locations} - {NamingScheme.DETACHED}
    if len(schemes) > 1:
        raise CorruptFileError(
            VERSIONS_FOLDER, f"V1 and V2 manifest names in one dataset ({store.uri})"
        )
    return locations


def find_manifest(store: ObjectStore, version: int | None = None) -> ManifestLocation:
    """Find the manifest of one version with one listing.

    Parameters
    ----------
    store
        Rooted at the dataset.
    version
        The version wanted, which may be a detached one; None = the latest version of the history.

    Raises
    ------
    DatasetNotFoundError
        The store holds no manifest.
    VersionNotFoundError
        There is no such version; the message names those that exist.
    InvalidRequestError
        That is no number.

    Notes
    -----
    The version hint is not used: it may be stale, and probing onwards from it costs as many
    requests as a listing.
    """
    if version is not None:
        version = checked_number("a version", version, -(2**63), 2**64 - 1)
    locations = list_manifests(store)
    history = [location for location in locations if not is_detached(location.version)]
    if version is None and history:
        return history[-1]
    for location in locations:
        if location.version == version:
            return location
    if version is None:
        raise DatasetNotFoundError(f"no dataset at {store.uri}: only detached versions")
    raise VersionNotFoundError(f"there is no version {version}; {_describe(history)}")


def latest_version(store: ObjectStore) -> int:
    """Return the number of the newest version; errors as ``find_manifest``."""
    return find_manifest(store).version


def _parse(objects: Iterable[ObjectMeta]) -> Iterable[ManifestLocation]:
    for meta in objects:
        name = parse_manifest_name(meta.path.rpartition("/")[2])
        if name is not None:
            yield ManifestLocation(name.version, name.scheme, meta)


def _describe(history: list[ManifestLocation]) -> str:
    if not history:
        return "all versions are detached"
    oldest, newest = history[0].version, history[-1].version
    if len(history) == 1:
        return f"its only version is {oldest}"
    return f"it has {len(history)} versions, {oldest} to {newest}"
