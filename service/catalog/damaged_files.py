"""Which part of a table an error is about, if it is that a file is damaged or missing."""

from __future__ import annotations

from typing import Literal

from lance_core.errors import CorruptFileError, ObjectNotFoundError

Part = Literal["table", "index"]

_INDEX_FOLDER = "_indices/"


def damaged_part(error: BaseException) -> Part | None:
    """Return what a damaged or missing file belongs to, by the error or what caused it."""
    found: Part | None = None
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CorruptFileError | ObjectNotFoundError):
            found = "table"
            if _INDEX_FOLDER in str(cause):
                return "index"
        cause = cause.__cause__
    return found
