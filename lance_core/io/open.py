"""From what a user writes to a store."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from lance_core.errors import InvalidRequestError
from lance_core.io.mapped_store import MappedStore
from lance_core.io.obstore_store import ObStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.io.store import ObjectStore

_FILE_SCHEME = "file://"


def open_store(uri: str, storage_options: Mapping[str, str] | None = None) -> ObjectStore:
    """Return the store whose root is ``uri``; nothing is read.

    Parameters
    ----------
    uri
        A path or ``file://`` URI of a local folder, which is mapped, or the URI of a remote one.
    storage_options
        Configuration of a remote store (see ``ObStore``); local folders need none and take none.

    Raises
    ------
    InvalidRequestError
        The URI is empty, of an unknown kind or on another host, or an option is wrong.
    """
    if "\0" in uri or not uri:
        raise InvalidRequestError(f'"{uri}" is no place: give a path or a URI such as s3://...')
    if uri.startswith(_FILE_SCHEME):
        return MappedStore(_local_path(uri))
    if "://" in uri:
        return ObStore(uri, storage_options)
    return MappedStore(uri)


def _local_path(uri: str) -> str:
    host, slash, path = uri.removeprefix(_FILE_SCHEME).partition("/")
    if host not in ("", "localhost") or not slash:
        raise InvalidRequestError(f"{uri} is no local folder: write file:///folder, with 3 slashes")
    return unquote(f"/{path}")
