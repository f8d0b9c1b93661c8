"""Writing an object piece by piece; readers see it whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from lance_core.errors import StoreError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    Piece = bytes | bytearray | memoryview | NDArray[np.generic]


class Upload(Protocol):
    """How one kind of store takes the bytes of an object before anyone can read them.

    Errors are those of ``ObjectStore``. After one, only ``discard`` may follow.
    """

    def write(self, piece: memoryview) -> None:
        """Take bytes; the caller may overwrite them afterwards."""

    def publish(self) -> None:
        """Make the object readable, replacing one of the same path, and durable."""

    def discard(self) -> None:
        """Forget all that was written; raises nothing that only means that it is gone."""


class ObjectSink:
    """An object under way: written in pieces, then finished or aborted.

    Used as a context manager, it is aborted at the end of the block unless it was finished.
    Not to be shared between threads.
    """

    def __init__(self, location: str, upload: Upload) -> None:
        self._location = location
        self._upload = upload
        self._is_open = True
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes written so far: where the next piece begins."""
        return self._size

    def write(self, piece: Piece) -> None:
        """Append bytes, which may be overwritten afterwards.

        Raises
        ------
        StoreError
            The sink was finished or aborted, or the store failed; then only ``abort`` may follow.
        """
        self._check_open()
        view = piece.data if isinstance(piece, np.ndarray) else memoryview(piece)
        if view.nbytes > 0:  # empty views cannot be cast
            self._upload.write(view.cast("B"))
            self._size += view.nbytes

    def finish(self) -> int:
        """Make the object readable, replacing one that exists, and return its size.

        Raises
        ------
        StoreError
            As ``write``; the object is not there then, or still the old one.
        """
        self._check_open()
        self._upload.publish()
        self._is_open = False
        return self._size

    def abort(self) -> None:
        """Leave no trace; does nothing after ``finish`` or a first ``abort``."""
        if self._is_open:
            self._is_open = False
            self._upload.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abort()

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreError(f"{self._location}: nothing can be written any more, it was closed")
