"""Objects written through obstore: parts of a multipart upload, or one put if they are small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import obstore as obs

from lance_core.io.obstore_errors import obstore_errors_translated

if TYPE_CHECKING:
    from obstore import WritableFile
    from obstore.store import ObjectStore as NativeStore

_PART_BYTES = 8 << 20
"""S3 takes 10,000 parts: enough for 80 GiB."""
_MAX_PARTS_UNDER_WAY = 4


class ObstoreUpload:
    """Holds one part, and those under way, in memory.

    The bytes of an upload whose process dies stay in the bucket, invisible, until the bucket's
    lifecycle rule for unfinished uploads removes them.
    """

    def __init__(self, store: NativeStore, path: str, location: str) -> None:
        self._store = store
        self._path = path
        self._location = location
        self._file: WritableFile | None = None

    def write(self, piece: memoryview) -> None:
        """Append bytes, waiting while too many parts are under way.

        They are copied, because obstore goes on using the memory it is given.
        """
        with obstore_errors_translated(self._location):
            self._opened().write(bytes(piece))

    def publish(self) -> None:
        """Send the rest and complete the upload."""
        with obstore_errors_translated(self._location):
            self._opened().close()

    def discard(self) -> None:
        """Abort the upload.

        Leaving the block of a writer by an exception is the one way obstore has to say so.
        """
        if self._file is not None and not self._file.closed():
            with obstore_errors_translated(self._location):
                self._file.__exit__(InterruptedError, InterruptedError(), None)

    def _opened(self) -> WritableFile:
        if self._file is None:
            self._file = obs.open_writer(
                self._store,
                self._path,
                buffer_size=_PART_BYTES,
                max_concurrency=_MAX_PARTS_UNDER_WAY,
            )
        return self._file
