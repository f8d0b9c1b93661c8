"""The files of a segment of an inverted index, and names in the cache for what is read of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import UnusableSegmentError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import pyarrow as pa

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.file.reader import ColumnTarget
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexMetadata


@dataclass(frozen=True, slots=True, eq=False)
class TextSource:
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

    def key(self, what: str, *name: Hashable) -> CacheKey:
        """Name something of the segment in the cache; files of a segment never change."""
        store, path = self.folder.key
        return CacheKey(what, store, (path, self.metadata.uuid, *name))

    def open(self, file_name: str) -> LanceFileReader:
        """Open a file of the segment.

        Raises
        ------
        CorruptFileError
            It is missing, or contradicts the format.
        UnusableSegmentError
            Its container is not supported.
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


def stored_column(reader: LanceFileReader, name: str, types: Sequence[pa.DataType]) -> ColumnTarget:
    """Return a column of a file as something to read.

    Raises
    ------
    UnusableSegmentError
        It is missing, or has none of the types.
    """
    if name not in reader.schema.names:
        raise UnusableSegmentError(f'column "{name}" is missing in {reader.path}')
    target = reader.target(name)
    if target.arrow_type not in types:
        raise UnusableSegmentError(
            f'column "{name}" of {reader.path} has type {target.arrow_type}, expected {types[0]}'
        )
    return target
