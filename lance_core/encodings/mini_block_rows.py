"""Rows of mini-block pages with lists: which chunks hold them (file format, 4.3 and 9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.levels import row_starts, slice_levels, take_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.levels import PageData
    from lance_core.encodings.page import Pieces
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

    @property
    def nbytes(self) -> int:
        """Memory of the two tables."""
        return self.first_rows.nbytes + self.trailers.nbytes

    def chunks_of(
        self, starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for row ranges ``[start, stop)`` the first chunk and the one after the last."""
        firsts = np.searchsorted(self.first_rows, starts, side="right") - 1
        lasts = np.searchsorted(self.first_rows, stops - 1, side="right") - 1
        goes_on = (stops == self.first_rows[lasts + 1]) & self.trailers[lasts]
        for index in np.flatnonzero(goes_on).tolist():
            lasts[index] = self._end_of_row(int(lasts[index]))
        return firsts, lasts + 1

    def _end_of_row(self, chunk: int) -> int:
        """Return the chunk in which the last row that starts in ``chunk`` ends."""
        while chunk + 1 < len(self.trailers) and self.trailers[chunk]:
            chunk += 1
            if int(self.first_rows[chunk + 1]) > int(self.first_rows[chunk]):
                break
        return chunk

    def cut(
        self,
        data: PageData,
        chunks: NDArray[np.int64],
        first_levels: NDArray[np.int64],
        pieces: Pieces,
        place: Place,
    ) -> PageData:
        """Cut rows out of decoded chunks.

        Parameters
        ----------
        data
            The levels and values of ``chunks`` one after another.
        chunks
            Shape ``(c,)``; ascending: those that ``chunks_of`` names for the pieces.
        first_levels
            Shape ``(c + 1,)``; where the levels of each chunk begin, and their number.
        pieces
            Ascending, disjoint row ranges.
        place
            The column, for errors.

        Raises
        ------
        CorruptFileError
            The levels contradict the index.
        """
        if data.repetition is None:
            raise place.corrupt("a page with lists has no repetition levels")
        if pieces == [(0, int(self.first_rows[-1]))]:  # the whole page, as scans want it
            return self._whole(data, place)
        starts = row_starts(data.repetition, data.layers)
        counts = np.diff(self.first_rows)[chunks]
        first_starts = np.concatenate(([0], np.cumsum(counts)))
        if not np.array_equal(np.searchsorted(starts, first_levels), first_starts):
            raise place.corrupt("other rows start in a chunk than its repetition index says")
        rows, stops = np.array(pieces, np.int64).reshape(-1, 2).T
        _, chunk_stops = self.chunks_of(rows, stops)
        begins = starts[self._position(rows, chunks, first_starts)]
        after = self._position(stops - 1, chunks, first_starts) + 1
        ends = np.append(starts, first_levels[-1])[after]
        run_ends = first_levels[np.searchsorted(chunks, chunk_stops)]
        ends = np.minimum(ends, run_ends)
        num_rows = int((stops - rows).sum())
        if len(pieces) == 1:  # views will do
            return slice_levels(data, int(begins[0]), int(ends[0]), num_rows)
        return take_levels(data, begins, ends, num_rows)

    def _whole(self, data: PageData, place: Place) -> PageData:
        num_rows = int(self.first_rows[-1])
        if np.count_nonzero(data.repetition == data.layers.num_lists) != num_rows:
            raise place.corrupt(f"levels of other than {num_rows} rows")
        return replace(data, num_rows=num_rows)

    def _position(
        self,
        rows: NDArray[np.int64],
        chunks: NDArray[np.int64],
        first_starts: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return which of the rows that start in ``chunks`` each of ``rows`` is."""
        home = np.searchsorted(self.first_rows, rows, side="right") - 1
        position: NDArray[np.int64] = (
            first_starts[np.searchsorted(chunks, home)] + rows - self.first_rows[home]
        )
        return position
