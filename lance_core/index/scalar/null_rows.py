"""The rows without a value, which the files of zone-based indices hold beside their zones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.fragment_rows import KeptRows
from lance_core.index.scalar.tree_map import decode_tree_map

if TYPE_CHECKING:
    from lance_core.file.reader import LanceFileReader
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.segment import SegmentSource

_METADATA_KEY = "null_bitmap"
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True, eq=False)
class NullRows:
    """A set of rows in a global buffer, read when it is first wanted.

    Parameters
    ----------
    source
        The segment.
    reader
        Its file.
    buffer
        Number of the buffer.
    """

    source: SegmentSource
    reader: LanceFileReader
    buffer: int

    @classmethod
    def find(cls, source: SegmentSource, reader: LanceFileReader) -> NullRows | None:
        """Return what the file says where its nulls are, None where it says nothing.

        Raises
        ------
        CorruptFileError
            There is no such buffer.

        Notes
        -----
        Scalar index page, section 6: files of pylance 1.0 to 7.1 have none, and those of 10.0 have
        one of which the manifest does not tell.
        """
        text = reader.schema.metadata.get(_METADATA_KEY)
        if text is None:
            return None
        existing = len(reader.metadata.buffers)
        if not text.isdecimal() or len(text) > _MAX_DIGITS or not 1 <= int(text) < existing:
            raise CorruptFileError(
                reader.path, f'metadata "{_METADATA_KEY}" is "{text}", of {existing} buffers'
            )
        return cls(source, reader, int(text))

    def rows(self) -> FragmentRows:
        """Return the rows; `CorruptFileError` if they contradict the format."""
        key = self.source.key("null rows", self.buffer)
        return self.source.cache.get_or_load(key, self._read).rows

    def _read(self) -> KeptRows:
        data = self.reader.global_buffer(self.buffer)
        return KeptRows.of(decode_tree_map(data, self.reader.path))
