"""Which files of its own folder a version needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import UnsupportedFeatureError
from lance_core.table.manifest import check_supported
from lance_core.table.naming import (
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
    data_file_path,
)
from lance_core.table.transaction import transaction_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lance_core.table.manifest import Manifest

_LANCE = ".lance"
_BLOB = ".blob"
_INDEX_DEPTH = 3


def referenced(manifest: Manifest, root_uri: str) -> Iterator[str]:
    """Yield the keys of all files below the root that a version names.

    Files that it names below a base path belong to another dataset, which does not clean them up
    for this one.

    Parameters
    ----------
    manifest
        The version.
    root_uri
        Where its dataset lies.

    Raises
    ------
    CorruptFileError
        The manifest contradicts itself.
    UnsupportedFeatureError
        The version has a feature that this release lacks, so that nobody can tell what it needs; or
        a base path that leads into the dataset itself.
    """
    check_supported(manifest)
    for base in manifest.base_paths.values():
        if f"{base.path.rstrip('/')}/".startswith(f"{root_uri.rstrip('/')}/"):
            raise UnsupportedFeatureError(
                f"{manifest.path}: base path {base.id} lies in the dataset itself, which is not"
                " cleaned up then"
            )
    if manifest.message.transaction_file:
        yield transaction_path(manifest.message.transaction_file)
    for fragment in manifest.fragments:
        for data_file in fragment.data_files:
            if data_file.base_id is None:
                yield key_of(data_file_path(data_file.path))
        deletion_file = fragment.deletion_file
        if deletion_file is not None and deletion_file.base_id is None:
            yield f"{DELETIONS_FOLDER}/{deletion_file.file_name(fragment.id)}"
    for segment in manifest.indices:
        if segment.base_id is None:
            yield f"{INDICES_FOLDER}/{segment.uuid}"


def key_of(path: str) -> str:
    """Return what a version names where it needs a file: another file, or the folder of an index.

    Blobs are named by the data file that they lie beside.

    Examples
    --------
    >>> key_of("_indices/0b0c3bd7-9cd2-4c0c-9d2c-4e0f8b2c5a11/index.idx")
    '_indices/0b0c3bd7-9cd2-4c0c-9d2c-4e0f8b2c5a11'
    >>> key_of("data/ab/01.blob"), key_of("data/ab.lance"), key_of("data/ab")
    ('data/ab', 'data/ab', 'data/ab')
    """
    parts = path.split("/")
    if parts[0] == INDICES_FOLDER and len(parts) >= _INDEX_DEPTH:
        return "/".join(parts[: _INDEX_DEPTH - 1])
    if parts[0] == DATA_FOLDER:
        return path.rpartition("/")[0] if path.endswith(_BLOB) else path.removesuffix(_LANCE)
    return path


def all_referenced(manifests: Iterable[Manifest], root_uri: str) -> set[str]:
    """Return the keys of all files that some version names; errors as `referenced`."""
    return {key for manifest in manifests for key in referenced(manifest, root_uri)}
