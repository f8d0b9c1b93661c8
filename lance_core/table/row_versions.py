"""In which version each row of a fragment was created, or changed last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.proto import row_ids_pb2
from lance_core.table.u64_segments import range_segment, segment_length

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_COUNT = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class RowVersions:
    """A version per physical row, as runs of rows with the same one.

    Parameters
    ----------
    versions
        Shape ``(r,)``, uint64: version of each run.
    first_offsets
        Shape ``(r + 1,)``, int64: offset of each run's first row, then the number of rows.
    """

    versions: NDArray[np.uint64]
    first_offsets: NDArray[np.int64]

    @classmethod
    def of_values(cls, versions: NDArray[np.uint64]) -> RowVersions:
        """Make them of the version of each row, shape ``(n,)``."""
        is_first = np.ones(len(versions), np.bool_)
        is_first[1:] = versions[1:] != versions[:-1]
        starts = np.flatnonzero(is_first)
        return cls(versions[starts], np.append(starts, len(versions)))

    def __len__(self) -> int:
        return int(self.first_offsets[-1])

    @property
    def nbytes(self) -> int:
        """Memory of the runs."""
        return int(self.versions.nbytes + self.first_offsets.nbytes)

    def at(self, row_offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the version of each row, shape ``(n,)``; offsets below ``len(self)``."""
        run = np.searchsorted(self.first_offsets, row_offsets, side="right") - 1
        found: NDArray[np.uint64] = self.versions[run]
        return found


def decode_row_versions(data: bytes, path: str) -> RowVersions:
    """Decode the versions of a fragment's rows.

    Parameters
    ----------
    data
        The serialized ``RowDatasetVersionSequence``.
    path
        The manifest, for errors.

    Raises
    ------
    CorruptFileError
        The bytes are no sequence, a segment contradicts itself, or there are more rows than a
        fragment can have.

    Notes
    -----
    Lance table format, section "Encodings used by the writer": of the span of a run only the number
    of its values counts.
    """
    try:
        message = row_ids_pb2.RowDatasetVersionSequence.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(path, f"versions of rows: {error}") from error
    lengths = [segment_length(run.span, path) for run in message.runs]
    if sum(lengths) > _LARGEST_COUNT:
        raise CorruptFileError(path, f"a fragment has versions of {sum(lengths)} rows")
    versions = np.array([run.version for run in message.runs], np.uint64)
    return RowVersions(versions, np.cumsum([0, *lengths], dtype=np.int64))


def encode_row_versions(versions: NDArray[np.uint64]) -> bytes:
    """Encode the version of each physical row, shape ``(n,)``."""
    found = RowVersions.of_values(versions)
    bounds = found.first_offsets.tolist()
    runs = [
        row_ids_pb2.RowDatasetVersionRun(span=range_segment(start, end), version=version)
        for start, end, version in zip(bounds, bounds[1:], found.versions.tolist(), strict=False)
    ]
    return row_ids_pb2.RowDatasetVersionSequence(runs=runs).SerializeToString()
