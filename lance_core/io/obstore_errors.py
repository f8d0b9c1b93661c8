"""What obstore raises, in the words of our error tree.

obstore keeps HTTP status and system error number only in the text of its errors; the patterns
were observed with obstore 0.12 and are pinned by tests against a local HTTP server.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import obstore as obs

from lance_core.errors import (
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
)
from lance_core.io.local_files import os_error_to_store_error

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATUS = re.compile(r"status code: (\d{3})\b")
_LOCAL_OS_ERROR = re.compile(r"LocalFileSystem.*\(os error (\d+)\)")
_NO_ANSWER = re.compile(r"HTTP error: |timed out|connection closed", re.IGNORECASE)
_OUTSIDE = re.compile(r"status code: 416\b|range was invalid|Invalid range", re.IGNORECASE)
_THROTTLED = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def means_outside_the_object(error: obs.exceptions.GenericError) -> bool:
    """Tell whether the store says that a range begins beyond the object's end."""
    return _OUTSIDE.search(str(error)) is not None


def first_line(error: Exception) -> str:
    """Return the message without the dump of native structures that obstore appends."""
    return str(error).partition("\n")[0].rstrip(": ")


@contextmanager
def obstore_errors_translated(location: str) -> Iterator[None]:
    """Raise every error of obstore, and what it raises in Python's own words, as one of ours."""
    try:
        yield
    except (obs.exceptions.BaseError, OSError, ValueError) as error:
        raise _translate(location, error) from error


def _translate(location: str, error: Exception) -> LanceError:
    if isinstance(error, FileNotFoundError):
        return ObjectNotFoundError(f"no object at {location}")
    if isinstance(error, obs.exceptions.AlreadyExistsError):
        return ObjectExistsError(f"{location} exists already")
    local = _LOCAL_OS_ERROR.search(first_line(error))
    if local is not None:
        return os_error_to_store_error(location, OSError(int(local[1]), first_line(error)))
    return _by_status(error)(f"{location}: {first_line(error)}")


def _by_status(error: Exception) -> type[StoreError]:
    text = str(error)
    found = _STATUS.search(text)
    if found is None:
        return StoreUnavailableError if _NO_ANSWER.search(text) is not None else StoreError
    status = int(found.group(1))
    if status in _THROTTLED:
        return StoreThrottledError
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
        return StoreUnavailableError
    return StoreError
