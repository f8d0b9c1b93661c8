"""Segments of ascending or arbitrary 64-bit numbers: how files store row ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.proto import row_ids_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_MAX_U64 = 2**64 - 1
_MAX_U16_SPAN = 0xFFFF
_MAX_U32_SPAN = 0xFFFF_FFFF
_HEAD_BYTES = 24
_HOLE_BYTES = 4
_VALUE_BYTES = 2
_FEW_SEGMENTS = 16
"""Values per descent that make segments of their own worth while."""

Runs = tuple["NDArray[np.uint64]", "NDArray[np.int64]"]
"""Runs of consecutive numbers, shape ``(r,)`` each: the first number, and how many there are."""


def runs_of_values(values: NDArray[np.uint64]) -> Runs:
    """Cut numbers, shape ``(n,)`` and in any order, into runs that count up by one."""
    if len(values) == 0:
        return values, np.empty(0, np.int64)
    starts = np.flatnonzero(values[1:] != values[:-1] + np.uint64(1)) + 1
    starts = np.concatenate(([0], starts)).astype(np.int64)
    return values[starts], np.diff(starts, append=len(values))


def segment_runs(segment: row_ids_pb2.U64Segment, path: str) -> Runs:
    """Return the numbers of a segment in their order, as runs.

    What is allocated is bounded by the bytes of the segment, whatever its numbers claim.

    Parameters
    ----------
    segment
        The segment.
    path
        The manifest, for errors.

    Raises
    ------
    CorruptFileError
        The segment contradicts itself.

    Notes
    -----
    Lance table format, section "Row ids"; verified against pylance 14.0.2. The bits of a bitmap
    stand lowest first, in spite of the comment in the published definition.
    """
    kind = segment.WhichOneof("segment")
    if kind == "range":
        return _range_runs(segment.range.start, segment.range.end, path)
    if kind == "range_with_holes":
        return _hole_runs(segment.range_with_holes, path)
    if kind == "range_with_bitmap":
        return _bitmap_runs(segment.range_with_bitmap, path)
    if kind == "sorted_array":
        return runs_of_values(_ascending(segment.sorted_array, path, "sorted values"))
    if kind == "array":
        return runs_of_values(_values(segment.array, path))
    raise CorruptFileError(path, "a segment of row ids has no known encoding")


def segment_length(segment: row_ids_pb2.U64Segment, path: str) -> int:
    """Return how many numbers a segment has; errors as `segment_runs`."""
    return int(segment_runs(segment, path)[1].sum())


def segments_of(values: NDArray[np.uint64]) -> Iterator[row_ids_pb2.U64Segment]:
    """Encode numbers in their order.

    Parameters
    ----------
    values
        Shape ``(n,)``.

    Notes
    -----
    Lance table format, section "Encodings used by the writer". Numbers that ascend but for a few
    places, as compaction puts fragments one after the other, are cut there.
    """
    if len(values) == 0:
        return
    descents = np.flatnonzero(values[1:] <= values[:-1]) + 1
    if len(descents) * _FEW_SEGMENTS > len(values):
        yield row_ids_pb2.U64Segment(array=_encoded_array(values))
        return
    for part in np.split(values, descents):
        yield _ascending_segment(part)


def range_segment(start: int, end: int) -> row_ids_pb2.U64Segment:
    """Return the segment of the numbers ``[start, end)``."""
    return row_ids_pb2.U64Segment(range=row_ids_pb2.U64Segment.Range(start=start, end=end))


def _range_runs(start: int, end: int, path: str) -> Runs:
    length = _checked_length(start, end, path)
    if length == 0:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return np.array([start], np.uint64), np.array([length], np.int64)


def _checked_length(start: int, end: int, path: str) -> int:
    if not 0 <= end - start < 2**63:
        raise CorruptFileError(path, f"a range of row ids goes from {start} to {end}")
    return end - start


def _hole_runs(message: row_ids_pb2.U64Segment.RangeWithHoles, path: str) -> Runs:
    start, end = message.start, message.end
    _checked_length(start, end, path)
    holes = _ascending(message.holes, path, "holes")
    if len(holes) > 0 and not start <= int(holes[0]) <= int(holes[-1]) < end:
        raise CorruptFileError(path, f"holes of row ids lie outside of {start} to {end}")
    # no overflow: a hole is below the end
    firsts = np.concatenate((np.array([start], np.uint64), holes + np.uint64(1)))
    ends = np.concatenate((holes, np.array([end], np.uint64)))
    lengths = (ends - firsts).astype(np.int64)
    return firsts[lengths > 0], lengths[lengths > 0]


def _bitmap_runs(message: row_ids_pb2.U64Segment.RangeWithBitmap, path: str) -> Runs:
    length = _checked_length(message.start, message.end, path)
    if len(message.bitmap) != -(-length // 8):
        raise CorruptFileError(
            path, f"a bitmap of {len(message.bitmap)} bytes stands for {length} row ids"
        )
    bits = np.unpackbits(
        np.frombuffer(message.bitmap, np.uint8), count=length, bitorder="little"
    ).astype(np.int8)
    edges = np.diff(bits, prepend=np.int8(0), append=np.int8(0))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return starts.astype(np.uint64) + np.uint64(message.start), ends - starts


def _ascending(message: row_ids_pb2.EncodedU64Array, path: str, what: str) -> NDArray[np.uint64]:
    values = _values(message, path)
    if (values[1:] <= values[:-1]).any():
        raise CorruptFileError(path, f"{what} of row ids do not ascend")
    return values


def _values(message: row_ids_pb2.EncodedU64Array, path: str) -> NDArray[np.uint64]:
    kind = message.WhichOneof("array")
    if kind == "u16_array":
        return _with_base(message.u16_array.base, message.u16_array.offsets, "<u2", path)
    if kind == "u32_array":
        return _with_base(message.u32_array.base, message.u32_array.offsets, "<u4", path)
    if kind == "u64_array":
        return _numbers(message.u64_array.values, "<u8", path)
    return np.empty(0, np.uint64)


def _with_base(base: int, data: bytes, dtype: str, path: str) -> NDArray[np.uint64]:
    offsets = _numbers(data, dtype, path)
    if len(offsets) > 0 and base + int(offsets.max()) > _MAX_U64:
        raise CorruptFileError(path, f"row ids from {base} on leave 64 bits")
    return offsets + np.uint64(base)


def _numbers(data: bytes, dtype: str, path: str) -> NDArray[np.uint64]:
    if len(data) % np.dtype(dtype).itemsize != 0:
        raise CorruptFileError(path, f"{len(data)} bytes are no array of {dtype} row ids")
    return np.frombuffer(data, dtype).astype(np.uint64)


def _ascending_segment(values: NDArray[np.uint64]) -> row_ids_pb2.U64Segment:
    """Encode ascending numbers as the smallest of the kinds there are, in the writer's order."""
    start, end = int(values[0]), int(values[-1]) + 1
    num_holes = end - start - len(values)
    if end > _MAX_U64:  # no range reaches the largest number
        return row_ids_pb2.U64Segment(sorted_array=_encoded_array(values))
    if num_holes == 0:
        return range_segment(start, end)
    sizes = {
        "holes": _HEAD_BYTES + _HOLE_BYTES * num_holes,
        "bitmap": _HEAD_BYTES + -(-(end - start) // 8),
        "sorted": _HEAD_BYTES + _VALUE_BYTES * len(values),
    }
    smallest = min(sizes, key=lambda kind: sizes[kind])
    if smallest == "holes":
        return row_ids_pb2.U64Segment(
            range_with_holes=row_ids_pb2.U64Segment.RangeWithHoles(
                start=start, end=end, holes=_encoded_array(_holes(values))
            )
        )
    if smallest == "bitmap":
        bits = np.zeros(end - start, np.uint8)
        bits[(values - values[0]).astype(np.int64)] = 1
        return row_ids_pb2.U64Segment(
            range_with_bitmap=row_ids_pb2.U64Segment.RangeWithBitmap(
                start=start, end=end, bitmap=np.packbits(bits, bitorder="little").tobytes()
            )
        )
    return row_ids_pb2.U64Segment(sorted_array=_encoded_array(values))


def _holes(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    firsts, lengths = runs_of_values(values)
    ends = firsts + lengths.astype(np.uint64)
    gaps = (firsts[1:] - ends[:-1]).astype(np.int64)
    before = np.cumsum(gaps) - gaps
    steps = np.arange(int(gaps.sum())) - np.repeat(before, gaps)
    return np.repeat(ends[:-1], gaps) + steps.astype(np.uint64)


def _encoded_array(values: NDArray[np.uint64]) -> row_ids_pb2.EncodedU64Array:
    base = values.min()
    span = int(values.max()) - int(base)
    if span > _MAX_U32_SPAN:
        return row_ids_pb2.EncodedU64Array(
            u64_array=row_ids_pb2.EncodedU64Array.U64Array(values=values.astype("<u8").tobytes())
        )
    offsets = values - base
    if span > _MAX_U16_SPAN:
        return row_ids_pb2.EncodedU64Array(
            u32_array=row_ids_pb2.EncodedU64Array.U32Array(
                base=int(base), offsets=offsets.astype("<u4").tobytes()
            )
        )
    return row_ids_pb2.EncodedU64Array(
        u16_array=row_ids_pb2.EncodedU64Array.U16Array(
            base=int(base), offsets=offsets.astype("<u2").tobytes()
        )
    )
