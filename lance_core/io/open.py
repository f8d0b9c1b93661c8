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


def open_parent(
    uri: str, storage_options: Mapping[str, str] | None = None
) -> tuple[ObjectStore, str]:
    """Return the store of the folder that an object lies in, and the object's name in it.

    Parameters
    ----------
    uri
        Path or URI of the object.
    storage_options
        As ``open_store``.

    Raises
    ------
    InvalidRequestError
        As ``open_store``, or the URI ends in no name.

    Examples
    --------
    >>> store, name = open_parent("/data/a.lance")
    >>> store.uri, name
    ('/data', 'a.lance')
    """
    folder, slash, name = uri.rpartition("/")
    if name in {"", ".", ".."} or folder.endswith(":/"):
        raise InvalidRequestError(f'"{uri}" is no file: its last part is no name')
    if uri.startswith(_FILE_SCHEME):
        name = unquote(name)
    return open_store("." if slash == "" else f"{folder}/", storage_options), name


def _local_path(uri: str) -> str:
    host, slash, path = uri.removeprefix(_FILE_SCHEME).partition("/")
    if host not in ("", "localhost") or not slash:
        raise InvalidRequestError(f"{uri} is no local folder: write file:///folder, with 3 slashes")
    return unquote(f"/{path}")
