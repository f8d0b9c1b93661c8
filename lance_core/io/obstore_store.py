"""Any store that obstore reaches: S3, Google Cloud Storage, Azure, local files, memory."""

from __future__ import annotations

import hashlib
import itertools
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import obstore as obs
from obstore.store import from_url

from lance_core.errors import InvalidRequestError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.io.obstore_errors import (
    first_line,
    means_outside_the_object,
    obstore_errors_translated,
)
from lance_core.io.obstore_upload import ObstoreUpload
from lance_core.io.paths import check_folder, check_path
from lance_core.io.sink import ObjectSink
from lance_core.io.store import ObjectMeta, check_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from obstore import ObjectMeta as ObstoreMeta
    from obstore.store import ClientConfig, ObjectStore as NativeStore, RetryConfig, S3Config

_REMOTE_GAP_BYTES = 64 << 10
_LOCAL_GAP_BYTES = 4 << 10

_CLIENT_OPTIONS = frozenset(
    (
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    )
)
"""Options of the HTTP client; obstore takes them apart from those of the store."""

_MAX_RETRIES_OPTION = "client_max_retries"
_RETRY_TIMEOUT_OPTION = "client_retry_timeout"
_NOT_OF_THE_STORE = _CLIENT_OPTIONS | {_MAX_RETRIES_OPTION, _RETRY_TIMEOUT_OPTION}

_MAX_RETRIES = 3
_RETRY_TIMEOUT_S = 15
"""obstore's own defaults, 10 retries in 3 minutes, outlive any query that waits for them."""

_WITHOUT_OPTIONS = ("file:", "memory:")

_memory_numbers = itertools.count(1)


class ObStore:
    """A prefix of an object store.

    Parameters
    ----------
    uri
        ``s3://bucket/prefix``, ``gs://...``, ``az://container/prefix``, ``file:///folder``,
        ``memory://`` (a new, empty store each time) and whatever else obstore knows.
    storage_options
        Configuration of the store and of its HTTP client, in one mapping with the names that
        pylance takes: ``region``, ``aws_endpoint``, ``allow_http``, ``timeout``,
        ``client_max_retries``, ``client_retry_timeout`` (seconds), ...; upper or lower case.
        What is left out comes from the environment, as obstore documents.

    Raises
    ------
    InvalidRequestError
        The URI or an option is not known to obstore, or a value cannot be read.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        options = {} if storage_options is None else _lower_case(storage_options)
        self._store = _connect(uri, options)
        self.uri = _place(uri)
        self.key = _identity(self.uri, options)
        is_local = uri.startswith(_WITHOUT_OPTIONS)
        self.coalesce_gap = _LOCAL_GAP_BYTES if is_local else _REMOTE_GAP_BYTES

    def get_range(self, path: str, start: int, end: int) -> memoryview:
        """Read a range with one request; an empty one costs none and is not looked up."""
        check_path(path)
        check_range(path, start, end, size=max(start, end))
        if start == end:
            return memoryview(b"")
        with obstore_errors_translated(self._location(path)):
            answer = self._request(path, start, end)
        check_range(path, start, end, size=start + len(answer))
        return answer

    def head(self, path: str) -> ObjectMeta:
        """Ask for size, e-tag and time of one object."""
        with obstore_errors_translated(self._location(path)):
            return _meta(obs.head(self._store, check_path(path)))

    def list_tree(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield all objects below ``prefix``, ordered by path."""
        folder = check_folder(prefix)
        with obstore_errors_translated(self._location(folder)):
            found = obs.list(self._store, _prefix(folder)).collect()
        return iter(sorted(map(_meta, found), key=lambda meta: meta.path))

    def list_folder(self, prefix: str) -> tuple[list[str], list[ObjectMeta]]:
        """Return sub-folder names and objects directly inside ``prefix``, ordered."""
        folder = check_folder(prefix)
        with obstore_errors_translated(self._location(folder)):
            found = obs.list_with_delimiter(self._store, _prefix(folder))
        names = sorted(path.rpartition("/")[2] for path in found["common_prefixes"])
        return names, sorted(map(_meta, found["objects"]), key=lambda meta: meta.path)

    def put(self, path: str, data: bytes) -> None:
        """Write an object, replacing one that exists."""
        with obstore_errors_translated(self._location(path)):
            obs.put(self._store, check_path(path), data, mode="overwrite")

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object by the store's own conditional put."""
        try:
            with obstore_errors_translated(self._location(path)):
                obs.put(self._store, check_path(path), data, mode="create")
        except NotImplementedError as error:
            raise UnsupportedFeatureError(
                f"{self.uri} cannot create an object only where there is none, so two commits could"
                " overwrite each other; commit through an external manifest store"
            ) from error

    def delete(self, path: str) -> None:
        """Remove an object, one request."""
        with suppress(ObjectNotFoundError), obstore_errors_translated(self._location(path)):
            obs.delete(self._store, check_path(path))

    def delete_many(self, paths: Sequence[str]) -> None:
        """Remove objects by one request where the store has one for many."""
        try:
            with obstore_errors_translated(self.uri):
                obs.delete(self._store, [check_path(path) for path in paths])
        except ObjectNotFoundError:  # some stores say so, and may have left the others
            for path in paths:
                self.delete(path)

    def open_sink(self, path: str) -> ObjectSink:
        """Upload in parts, several at a time; small objects by one put."""
        location = self._location(check_path(path))
        return ObjectSink(location, ObstoreUpload(self._store, path, location))

    def map(self, path: str) -> memoryview | None:
        """Return None: bytes of these stores have to be read."""
        return None

    def _request(self, path: str, start: int, end: int) -> memoryview:
        try:
            return memoryview(obs.get_range(self._store, path, start=start, end=end))
        except obs.exceptions.GenericError as error:
            if means_outside_the_object(error):
                size = obs.head(self._store, path)["size"]
                check_range(path, start, end, size=size)
            raise

    def _location(self, path: str) -> str:
        return f"{self.uri}/{path}"


def _lower_case(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def _connect(uri: str, options: Mapping[str, str]) -> NativeStore:
    client = {name: value for name, value in options.items() if name in _CLIENT_OPTIONS}
    config = {name: value for name, value in options.items() if name not in _NOT_OF_THE_STORE}
    try:
        if uri.startswith(_WITHOUT_OPTIONS):
            return from_url(uri)
        return from_url(
            uri,
            config=cast("S3Config", config),
            client_options=cast("ClientConfig", client),
            retry_config=_retries(options),
        )
    except (obs.exceptions.BaseError, ValueError, TypeError) as error:
        raise InvalidRequestError(f"cannot open {uri}: {first_line(error)}") from error


def _retries(options: Mapping[str, str]) -> RetryConfig:
    timeout_s = float(options.get(_RETRY_TIMEOUT_OPTION, _RETRY_TIMEOUT_S))
    return {
        "max_retries": int(options.get(_MAX_RETRIES_OPTION, _MAX_RETRIES)),
        "retry_timeout": timedelta(seconds=timeout_s),
    }


def _place(uri: str) -> str:
    return (
        f"memory://obstore-{next(_memory_numbers)}"
        if uri.startswith("memory:")
        else uri.rstrip("/")
    )


def _identity(place: str, options: Mapping[str, str]) -> str:
    """Return a name that differs where the bytes may: other endpoint, other rights.

    Two users of one bucket name need not see the same objects.
    """
    if not options:
        return place
    digest = hashlib.sha256(repr(sorted(options.items())).encode()).hexdigest()
    return f"{place}#{digest[:8]}"


def _prefix(folder: str) -> str | None:
    return None if folder == "" else folder


def _meta(native: ObstoreMeta) -> ObjectMeta:
    return ObjectMeta(native["path"], native["size"], native["e_tag"], native["last_modified"])
