"""The rows of a segment as they were coded, row by row, for segments of the same model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_core.file.windows import least_row_bytes
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.blocks import plain_values
from lance_core.index.vector.pq import ProductQuantizer
from lance_core.index.vector.rabit import ERROR_FACTORS, RabitQuantizer
from lance_core.kernels.rq_signs import BLOCK_ROWS, unpack_signs
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.file.columns import ColumnTarget
    from lance_core.index.vector.segment import VectorSegment

READ_BYTES = 16 << 20
"""About how much is read at once."""

_ROW_ID_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Rows of vectors that have a partition and a code.

    Parameters
    ----------
    row_ids
        Shape ``(n,)``, as files name them; several rows have one where a row holds several vectors.
    partitions
        Shape ``(n,)``.
    columns
        What the storage keeps beside the row ids, by the names of its columns: shape ``(n, width)``
        where a row has a list, else ``(n,)``. Codes lie row after row, whatever files do.
    """

    row_ids: NDArray[np.uint64]
    partitions: NDArray[np.uint32]
    columns: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.row_ids)

    def kept(self, row_ids: NDArray[np.uint64], is_kept: NDArray[np.bool_]) -> CodedRows:
        """Return some of the rows, under other ids.

        Parameters
        ----------
        row_ids
            Shape ``(n,)``: what all rows are called now.
        is_kept
            Shape ``(n,)``.
        """
        if is_kept.all():
            return CodedRows(row_ids, self.partitions, self.columns)
        columns = {name: values[is_kept] for name, values in self.columns.items()}
        return CodedRows(row_ids[is_kept], self.partitions[is_kept], columns)


def stored_rows(segment: VectorSegment, read_bytes: int = READ_BYTES) -> Iterator[CodedRows]:
    """Read all rows of a segment, one partition after the other.

    Parameters
    ----------
    segment
        The segment.
    read_bytes
        About how much is read at once. Codes that lie column after column are read by whole
        partitions.

    Raises
    ------
    UnusableSegmentError
        Its rows do not have what this release stores: those of RaBitQ up to release 7.1.
    CorruptFileError
        A row id or a code is null, or cannot be read.

    Notes
    -----
    Vector index page, sections 4.1 to 4.4.
    """
    targets = stored_columns(segment)
    names = [each.field.name for each in targets]
    reader = segment.storage.reader
    for pieces in _reads(segment, targets, read_bytes):
        ranges = [(each.start, each.stop) for each in pieces]
        arrays = reader.read([segment.storage.row_ids, *targets], ranges)
        row_ids, *columns = (plain_values(array, reader.path) for array in arrays)
        lengths = [len(each) for each in pieces]
        columns[0] = _row_after_row(segment, columns[0], lengths)
        yield CodedRows(
            row_ids,
            np.repeat(np.array([each.partition for each in pieces], np.uint32), lengths),
            dict(zip(names, columns, strict=True)),
        )


def stored_columns(segment: VectorSegment) -> Sequence[ColumnTarget]:
    """Return the columns of coded rows; reads nothing, and raises as `stored_rows` does."""
    quantizer, storage = segment.quantizer, segment.storage
    if not isinstance(quantizer, RabitQuantizer):
        return storage.payload
    if quantizer.codes.is_residual:
        raise UnusableSegmentError("RaBitQ codes as releases up to 7.1 wrote")
    if quantizer.has_extra:
        return storage.payload
    # No search by one bit looks at errors, but they are written.
    if ERROR_FACTORS not in storage.reader.schema.names:
        raise UnusableSegmentError(f'column "{ERROR_FACTORS}" is missing in its files')
    return (*storage.payload, storage.reader.target(ERROR_FACTORS))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one partition, as the file numbers rows."""

    partition: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def _reads(
    segment: VectorSegment, targets: Sequence[ColumnTarget], read_bytes: int
) -> Iterator[Sequence[_Piece]]:
    """Yield the pieces to read at once."""
    row_bytes = _ROW_ID_BYTES + sum(least_row_bytes(arrow_type(each.field)) for each in targets)
    most = max(int(read_bytes / row_bytes) // BLOCK_ROWS, 1) * BLOCK_ROWS
    pieces: list[_Piece] = []
    num_rows = 0
    for piece in _pieces(segment, most):
        if num_rows > 0 and num_rows + len(piece) > most:
            yield pieces
            pieces, num_rows = [], 0
        pieces.append(piece)
        num_rows += len(piece)
    if num_rows > 0:
        yield pieces


def _pieces(segment: VectorSegment, most: int) -> Iterator[_Piece]:
    """Cut partitions where they may be cut; blocks of packed signs stay whole."""
    for partition in range(segment.num_partitions):
        start, stop = segment.row_range(partition)
        step = max(stop - start, 1) if _is_transposed(segment) else most
        for first in range(start, stop, step):
            yield _Piece(partition, first, min(first + step, stop))


def _row_after_row(
    segment: VectorSegment, codes: NDArray[Any], lengths: Sequence[int]
) -> NDArray[Any]:
    """Return the codes of pieces in the order of their rows, shape ``(n, width)``."""
    quantizer = segment.quantizer
    is_packed = isinstance(quantizer, RabitQuantizer) and quantizer.is_packed
    if not is_packed and not _is_transposed(segment):
        return codes
    num_bytes = codes.shape[1]
    rows = np.empty(codes.shape, np.uint8)
    first = 0
    for length in lengths:
        part = slice(first, first + length)
        flat = np.ascontiguousarray(codes[part]).reshape(-1)
        rows[part] = unpack_signs(flat, num_bytes) if is_packed else flat.reshape(num_bytes, -1).T
        first += length
    return rows


def _is_transposed(segment: VectorSegment) -> bool:
    """Tell whether the codes of a partition lie column after column."""
    quantizer = segment.quantizer
    return isinstance(quantizer, ProductQuantizer) and quantizer.is_transposed
