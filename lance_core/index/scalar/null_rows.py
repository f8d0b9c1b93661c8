"""The rows without a value, of which some index files hold a set beside their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.fragment_rows import KeptRows
from lance_core.index.scalar.tree_map import decode_tree_map

if TYPE_CHECKING:
    from lance_core.file.reader import LanceFileReader
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.segment import ScalarSource

ZONE_NULLS = "null_bitmap"
"""Where the files of zone-based indices say which buffer holds their nulls."""

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

    source: ScalarSource
    reader: LanceFileReader
    buffer: int

    @classmethod
    def find(cls, source: ScalarSource, reader: LanceFileReader, key: str) -> NullRows | None:
        """Return the nulls that a file has, None where it says nothing of them.

        Parameters
        ----------
        source
            The segment.
        reader
            Its file.
        key
            Entry of the file's metadata that says in which buffer they are.

        Raises
        ------
        CorruptFileError
            There is no such buffer.

        Notes
        -----
        Scalar index page, sections 4 and 6: LABEL_LIST has one since pylance 4.0, zone-based
        indices later, in 10.0 without a word of it in the manifest.
        """
        text = reader.schema.metadata.get(key)
        if text is None:
            return None
        existing = len(reader.metadata.buffers)
        if not text.isdecimal() or len(text) > _MAX_DIGITS or not 1 <= int(text) < existing:
            raise CorruptFileError(
                reader.path, f'metadata "{key}" is "{text}", expected a buffer below {existing}'
            )
        return cls(source, reader, int(text))

    def rows(self) -> FragmentRows:
        """Return the rows; `CorruptFileError` if they contradict the format."""
        return self._kept().rows

    def load(self) -> int:
        """Bring the rows into the cache; return the memory they take. Errors as `rows`."""
        return self._kept().nbytes

    def _kept(self) -> KeptRows:
        key = self.source.key("null rows", self.buffer)
        return self.source.cache.get_or_load(key, self._read)

    def _read(self) -> KeptRows:
        data = self.reader.global_buffer(self.buffer)
        return KeptRows.of(decode_tree_map(data, self.reader.path))
