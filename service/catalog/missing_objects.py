"""Errors that come of objects which a manifest names and the store no longer has."""

from __future__ import annotations

from lance_core.errors import ObjectNotFoundError


def is_about_missing_object(error: BaseException) -> bool:
    """Say whether an error, or what caused it, is that an object is not there.

    A version that was compacted and cleaned away, or whose dataset was deleted, fails so while it
    is still held as the latest.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ObjectNotFoundError):
            return True
        cause = cause.__cause__
    return False
