"""The store of a dataset, by the URI that users write: some say who decides on versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

from lance_core.errors import InvalidRequestError
from lance_core.io.disk_tier import KeptObjects
from lance_core.io.mapped_store import MappedStore
from lance_core.io.open import open_parent, open_store
from lance_core.table.dynamodb_manifests import ENDPOINT_OPTION, DynamoManifests
from lance_core.table.external_manifests import ExternallyVersionedStore
from lance_core.table.naming import (
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
    MANIFEST_SUFFIX,
    VERSIONS_FOLDER,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.io.disk_tier import DiskTier
    from lance_core.io.store import ObjectStore

_SCHEME = "s3+ddb://"
_TABLE = "ddbTableName"


KEPT_OBJECTS = KeptObjects(
    (DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER), VERSIONS_FOLDER, MANIFEST_SUFFIX
)
"""Files of a dataset that a tier of local disk may keep: all but transactions and references."""


def open_dataset_store(
    uri: str,
    storage_options: Mapping[str, str] | None = None,
    disk_tier: DiskTier | None = None,
) -> ObjectStore:
    """Return the store whose root is ``uri``; nothing is read.

    Parameters
    ----------
    uri
        As for ``open_store``, or ``s3+ddb://bucket/path?ddbTableName=NAME``: the DynamoDB table of
        that name decides which versions are committed.
    storage_options
        As for ``open_store``, and ``dynamodb_endpoint``.
    disk_tier
        Keeps what is read of remote stores; None = nothing is kept.

    Raises
    ------
    InvalidRequestError
        As ``open_store``, or the URI names no table, or boto3 is not installed.
    """
    options = {} if storage_options is None else dict(storage_options)
    of_store = _of_files(options)
    if not uri.startswith(_SCHEME):
        return _tiered(open_store(uri, of_store), disk_tier)
    place = _DynamoPlace.of(uri)
    rows = DynamoManifests.open(place.table, options)
    _, _, base_uri = place.path.partition("/")
    store = _tiered(open_store(f"s3://{place.path}", of_store), disk_tier)
    return ExternallyVersionedStore(store, rows, unquote(base_uri), uri=uri)


def open_folder_beside(uri: str, storage_options: Mapping[str, str] | None = None) -> ObjectStore:
    """Return the store of a folder that is no dataset, opened with the options of one.

    Raises
    ------
    InvalidRequestError
        As ``open_store``.
    """
    return open_store(uri, _of_files(storage_options or {}))


def open_file_beside(
    uri: str, storage_options: Mapping[str, str] | None = None
) -> tuple[ObjectStore, str]:
    """Return the store of a file's folder, opened with the options of a dataset, and its name.

    Raises
    ------
    InvalidRequestError
        As ``open_parent``.
    """
    return open_parent(uri, _of_files(storage_options or {}))


def _of_files(storage_options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the store of files, without those of who decides on versions.

    Examples
    --------
    >>> _of_files({"dynamodb_endpoint": "http://127.0.0.1:1", "aws_region": "x"})
    {'aws_region': 'x'}
    """
    return {
        name: value for name, value in storage_options.items() if name.lower() != ENDPOINT_OPTION
    }


def _tiered(store: ObjectStore, disk_tier: DiskTier | None) -> ObjectStore:
    is_local = isinstance(store, MappedStore)
    return store if disk_tier is None or is_local else disk_tier.over(store)


def uri_below(uri: str, folder: str) -> str:
    """Return the URI of a folder of a dataset.

    Examples
    --------
    >>> uri_below("s3+ddb://bucket/a.lance?ddbTableName=t", "tree/x")
    's3+ddb://bucket/a.lance/tree/x?ddbTableName=t'
    """
    place, query = _split(uri)
    return f"{place.rstrip('/')}/{folder}{query}"


def uri_above(uri: str, folder: str) -> str | None:
    """Return the URI that `uri_below` made ``uri`` from, None if it lies in no such folder.

    Examples
    --------
    >>> uri_above("/data/a.lance/tree/x", "tree/x")
    '/data/a.lance'
    """
    place, query = _split(uri)
    root = place.rstrip("/").removesuffix(f"/{folder}")
    return None if root == place.rstrip("/") else f"{root}{query}"


def uri_of_files(uri: str) -> str:
    """Return where the files of a dataset lie, without who decides on its versions.

    Examples
    --------
    >>> uri_of_files("s3+ddb://bucket/a.lance?ddbTableName=t")
    's3://bucket/a.lance'
    """
    place, _ = _split(uri)
    return place.replace(_SCHEME, "s3://", 1).rstrip("/")


@dataclass(frozen=True, slots=True)
class _DynamoPlace:
    """Bucket and folder, and the name of the table."""

    path: str
    table: str

    @classmethod
    def of(cls, uri: str) -> _DynamoPlace:
        place, query = _split(uri)
        tables = parse_qs(query.removeprefix("?")).get(_TABLE, [])
        path = place.removeprefix(_SCHEME).strip("/")
        if len(tables) != 1 or "/" not in path:
            raise InvalidRequestError(
                f"{uri} names no dataset: write {_SCHEME}bucket/path?{_TABLE}=NAME"
            )
        return cls(path, tables[0])


def _split(uri: str) -> tuple[str, str]:
    """Split off the query, with its question mark; only one scheme has any."""
    if not uri.startswith(_SCHEME):
        return uri, ""
    place, mark, query = uri.partition("?")
    return place, mark + query
