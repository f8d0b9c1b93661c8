"""Stable row ids of a fragment's rows, in the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.proto import row_ids_pb2
from lance_core.table.u64_segments import runs_of_values, segment_runs, segments_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.table.u64_segments import Runs


@dataclass(frozen=True, slots=True, eq=False)
class RowIds:
    """Row ids of physical rows, as runs that count up by one: few where rows were only appended.

    Parameters
    ----------
    first_ids
        Shape ``(r,)``, uint64: id of the first row of each run.
    first_offsets
        Shape ``(r + 1,)``, int64: offset of that row, then the number of rows.
    """

    first_ids: NDArray[np.uint64]
    first_offsets: NDArray[np.int64]

    @classmethod
    def of_runs(cls, first_ids: NDArray[np.uint64], lengths: NDArray[np.int64]) -> RowIds:
        """Make them of the first id and the length of each run, shape ``(r,)`` both."""
        return cls(first_ids, np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))))

    @classmethod
    def of_values(cls, row_ids: NDArray[np.uint64]) -> RowIds:
        """Make them of the id of each row, shape ``(n,)``."""
        return cls.of_runs(*runs_of_values(row_ids))

    def __len__(self) -> int:
        return int(self.first_offsets[-1])

    @property
    def nbytes(self) -> int:
        """Memory of the runs."""
        return int(self.first_ids.nbytes + self.first_offsets.nbytes)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Rows of each run, shape ``(r,)``."""
        return np.diff(self.first_offsets)

    def at(self, row_offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the id of each row, shape ``(n,)``; offsets in any order, below ``len(self)``."""
        run = np.searchsorted(self.first_offsets, row_offsets, side="right") - 1
        steps = row_offsets - self.first_offsets[run]
        found: NDArray[np.uint64] = self.first_ids[run] + steps.astype(np.uint64)
        return found

    def without(self, row_offsets: NDArray[np.int64]) -> tuple[Runs, NDArray[np.int64]]:
        """Cut rows out of the runs.

        Parameters
        ----------
        row_offsets
            Shape ``(n,)``, ascending: the rows to leave out.

        Returns
        -------
        runs
            Of the rows that are left.
        first_offsets
            Shape ``(r,)``: offset of the first row of each of these runs.
        """
        starts = np.union1d(self.first_offsets[:-1], row_offsets + 1)
        starts = np.setdiff1d(starts[starts < len(self)], row_offsets, assume_unique=True)
        stops = np.union1d(self.first_offsets, row_offsets)
        ends = stops[np.searchsorted(stops, starts, side="right")]
        return (self.at(starts), ends - starts), starts


def decode_row_ids(data: bytes, path: str) -> RowIds:
    """Decode the row ids of a fragment.

    Parameters
    ----------
    data
        The serialized ``RowIdSequence``.
    path
        The manifest, for errors.

    Raises
    ------
    CorruptFileError
        The bytes are no sequence, or a segment contradicts itself.
    """
    try:
        message = row_ids_pb2.RowIdSequence.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(path, f"row ids: {error}") from error
    runs = [segment_runs(segment, path) for segment in message.segments]
    if len(runs) == 1:
        return RowIds.of_runs(*runs[0])
    firsts = [np.empty(0, np.uint64), *(first for first, _ in runs)]
    lengths = [np.empty(0, np.int64), *(length for _, length in runs)]
    if sum(int(each.sum()) for each in lengths) >= 2**63:
        raise CorruptFileError(path, "a sequence of row ids has 2**63 of them or more")
    return RowIds.of_runs(np.concatenate(firsts), np.concatenate(lengths))


def encode_row_ids(row_ids: NDArray[np.uint64]) -> bytes:
    """Encode the row ids of a fragment, shape ``(n,)``, one per physical row, none twice."""
    return row_ids_pb2.RowIdSequence(segments=segments_of(row_ids)).SerializeToString()
