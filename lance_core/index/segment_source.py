"""The files of an index segment, and names in the cache for what is read of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import UnusableSegmentError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexMetadata


@dataclass(frozen=True, slots=True, eq=False)
class SegmentSource:
    """Where the files of a segment are, and what keeps what was decoded.

    Parameters
    ----------
    folder
        Where its files lie.
    metadata
        What the manifest says.
    cache
        The session's.
    """

    folder: Place
    metadata: IndexMetadata
    cache: ByteCache

    @property
    def built_from(self) -> BitMap:
        """Fragments that the segment was built from, as the manifest says."""
        bitmap = self.metadata.fragment_bitmap
        return BitMap() if bitmap is None else bitmap

    def key(self, what: str, *name: Hashable) -> CacheKey:
        """Name something of the segment in the cache; files of a segment never change."""
        store, path = self.folder.key
        return CacheKey(what, store, (path, self.metadata.uuid, *name))

    def open(self, file_name: str) -> LanceFileReader:
        """Open a file of the segment.

        Raises
        ------
        UnusableSegmentError
            Its container or an encoding is not supported, as of files that pylance 0.20 wrote.
        CorruptFileError
            It is missing, or contradicts the format.
        """
        try:
            return self.open_if_present(file_name)
        except ObjectNotFoundError as error:
            path = self.folder.below(file_name).path
            raise CorruptFileError(path, "part of an index segment, but missing") from error

    def open_if_present(self, file_name: str) -> LanceFileReader:
        """Open a file that may be missing: ``ObjectNotFoundError``; else as `open`."""
        place = self.folder.below(file_name)
        sizes = {file.path: file.size for file in self.metadata.files}
        try:
            return LanceFileReader.open(place.scheduler, place.path, sizes.get(file_name))
        except UnsupportedFeatureError as error:
            raise UnusableSegmentError(str(error)) from error
