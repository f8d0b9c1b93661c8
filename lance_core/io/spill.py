"""Files for what does not fit in memory, in the folder that the system has for temporary ones."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lance_core.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "lance-serve-index-"


@contextmanager
def spill_folder() -> Iterator[Path]:
    """Make a folder that is gone at the end of the block.

    Raises
    ------
    StoreUnavailableError
        It cannot be made.
    """
    with spilling():
        folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    with folder as path:
        yield Path(path)


@contextmanager
def spill_file() -> Iterator[BinaryIO]:
    """Make a file that has no name, and is gone at the end of the block.

    Raises
    ------
    StoreUnavailableError
        It cannot be made.
    """
    with spilling():
        file = tempfile.TemporaryFile(prefix=_PREFIX)  # noqa: SIM115  # closed below
    try:
        yield file
    finally:
        with suppress(OSError):  # flushing the rest to a full disk fails, and no longer matters
            file.close()


@contextmanager
def spilling() -> Iterator[None]:
    """Work with such files: what the system refuses is said so that it can be mended.

    Raises
    ------
    StoreUnavailableError
        Names the folder, why, and what to do.
    """
    try:
        yield
    except OSError as error:
        why = str(error) if error.strerror is None else error.strerror
        raise StoreUnavailableError(
            f"what does not fit in memory cannot be kept in {_place()}: {why}; set TMPDIR to a"
            " folder with room, or allow more memory"
        ) from error


def _place() -> str:
    """Return the folder for temporary files, or say what to call it where there is none."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return "a temporary folder"
