"""Rows of mini-block pages with lists: which chunks hold them (file format, 4.3 and 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.levels import row_starts, slice_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.levels import PageData
    from lance_core.encodings.place import Place

_WORD_BYTES = 8
_ENTRY_WORDS = 2


@dataclass(frozen=True, slots=True, eq=False)
class RepetitionIndex:
    """Which rows start in which chunk.

    ``first_rows`` has shape ``(chunks + 1,)``: the first row that starts in each chunk, and the
    number of rows. ``trailers`` has shape ``(chunks,)``: whether the chunk ends inside a row.
    """

    first_rows: NDArray[np.int64]
    trailers: NDArray[np.bool_]

    @classmethod
    def parse(
        cls, buffer: memoryview, num_chunks: int, num_rows: int, place: Place
    ) -> RepetitionIndex:
        """Read the index; rows must add up to those of the page."""
        if len(buffer) != num_chunks * _ENTRY_WORDS * _WORD_BYTES:
            raise place.corrupt(f"a repetition index of {len(buffer)} bytes")
        entries = np.frombuffer(buffer, "<i8").reshape(num_chunks, _ENTRY_WORDS)
        ends = entries[:, 0]
        trailers = entries[:, 1] > 0
        preambles = np.concatenate(([False], trailers))[:num_chunks]
        starts = ends + trailers - preambles
        first_rows = np.concatenate(([0], np.cumsum(starts)))
        in_range = (starts >= 0) & (starts <= num_rows)
        if not bool(in_range.all()) or int(first_rows[-1]) != num_rows:
            raise place.corrupt("the repetition index does not add up to the page's rows")
        return cls(first_rows, trailers)

    def chunks_of(self, start: int, stop: int) -> tuple[int, int]:
        """Return the first chunk and the one after the last that hold rows ``[start, stop)``."""
        first = int(np.searchsorted(self.first_rows, start, side="right")) - 1
        last = int(np.searchsorted(self.first_rows, stop - 1, side="right")) - 1
        num_chunks = len(self.trailers)
        if stop == int(self.first_rows[last + 1]):  # its last row may go on in the next chunks
            while last + 1 < num_chunks and self.trailers[last]:
                last += 1
                if int(self.first_rows[last + 1]) > int(self.first_rows[last]):
                    break
        return first, last + 1

    def cut(
        self,
        data: PageData,
        start: int,
        span: tuple[int, int],
        level_span: NDArray[np.int64],
        stop: int,
        place: Place,
    ) -> PageData:
        """Cut rows ``[start, stop)`` out of decoded chunks.

        ``level_span`` holds where the levels of chunks ``span`` begin and end in ``data``.
        """
        if data.repetition is None:
            raise place.corrupt("a page with lists has no repetition levels")
        begin, end = (int(bound) for bound in level_span)
        starts = row_starts(data.repetition[begin:end], data.layers) + begin
        first = start - int(self.first_rows[span[0]])
        last = first + stop - start
        if last > len(starts):
            raise place.corrupt("fewer rows start in a chunk than its repetition index says")
        stop_level = int(starts[last]) if last < len(starts) else end
        return slice_levels(data, int(starts[first]), stop_level, stop - start)
