"""Treemaps: sets of row addresses as files store them, one roaring bitmap per fragment.

Read as runs of offsets and never row by row: a few bytes may stand for four billion rows, and a
run costs its reader the same whatever its length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.row_set import bitmap_from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from pyroaring import BitMap

T = TypeVar("T")

_U16 = np.dtype("<u2")
_U32 = np.dtype("<u4")
_NUM_PARTS = struct.Struct("<Q")
_WORD = struct.Struct("<I")
_COOKIE_BITS = 16
_WITHOUT_RUNS = 12346
_WITH_RUNS = 12347
_FEW_CONTAINERS = 4  # so few with runs have no table of positions
_CONTAINER_ROWS = 1 << 16
_LONGEST_ARRAY = 4096
_BITSET_BYTES = _CONTAINER_ROWS // 8


@dataclass(frozen=True, slots=True, eq=False)
class OffsetRuns:
    """Row offsets of one fragment, as runs ``[starts[i], ends[i])``.

    Both have shape ``(r,)`` and ascend; between two runs lies at least one row.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def num_rows(self) -> int:
        """Number of offsets."""
        return int(self.lengths.sum())

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of offsets in each run, shape ``(r,)``."""
        return self.ends - self.starts

    @property
    def span(self) -> int:
        """The first offset behind all of them."""
        return int(self.ends[-1]) if len(self.ends) > 0 else 0


def decode_treemap(data: bytes, path: str) -> dict[int, OffsetRuns]:
    """Decode a treemap.

    Parameters
    ----------
    data
        The serialized treemap.
    path
        File that the bytes came from, for the error.

    Returns
    -------
    dict[int, OffsetRuns]
        The rows of each fragment, by ascending fragment id.

    Raises
    ------
    CorruptFileError
        The bytes are no treemap, or there are more than it takes.

    Notes
    -----
    Lance table format, section "Serializations": a count, then for each fragment its id and a
    bitmap in the portable roaring format, with or without run containers.
    """
    return _decode_parts(_Bytes(data, path), _decode_runs)


def decode_bitmaps(data: bytes, path: str) -> dict[int, BitMap]:
    """Decode a treemap as bitmaps, for sets without long runs; like `decode_treemap` otherwise."""
    return _decode_parts(_Bytes(data, path), _decode_bitmap)


def encode_treemap(parts: Mapping[int, BitMap]) -> bytes:
    """Serialize the rows of fragments, by fragment id; empty ones are left out.

    Run containers are used where they are smaller; the bitmaps may be changed inside for that, but
    keep their members.
    """
    pieces = [b""]
    for key in sorted(key for key, bitmap in parts.items() if bitmap):
        parts[key].run_optimize()
        pieces += [_WORD.pack(key), parts[key].serialize()]
    pieces[0] = _NUM_PARTS.pack(len(pieces) // 2)
    return b"".join(pieces)


class _Bytes:
    """Bytes that are read from front to back."""

    __slots__ = ("_data", "path", "position")

    def __init__(self, data: bytes, path: str) -> None:
        self._data = memoryview(data)
        self.path = path
        self.position = 0

    @property
    def num_left(self) -> int:
        return len(self._data) - self.position

    def take(self, count: int) -> memoryview:
        if count > self.num_left:
            raise self.corrupt(f"{count} bytes wanted, {self.num_left} are left")
        self.position += count
        return self._data[self.position - count : self.position]

    def since(self, position: int) -> memoryview:
        """Return what was taken from a position on."""
        return self._data[position : self.position]

    def numbers(self, count: int) -> NDArray[np.int64]:
        """Take ``count`` unsigned numbers of 16 bits."""
        return np.frombuffer(self.take(count * _U16.itemsize), _U16).astype(np.int64)

    def corrupt(self, what: str) -> CorruptFileError:
        return CorruptFileError(self.path, f"byte {self.position} of a treemap: {what}")


def _decode_parts(source: _Bytes, decode: Callable[[_Bytes], T]) -> dict[int, T]:
    (num_parts,) = _NUM_PARTS.unpack(source.take(_NUM_PARTS.size))
    parts: dict[int, T] = {}
    last = -1
    for _ in range(num_parts):  # every part takes bytes, so the count need not be believed
        (key,) = _WORD.unpack(source.take(_WORD.size))
        if key <= last:
            raise source.corrupt(f"fragment {key} stands behind fragment {last}")
        parts[key] = decode(source)
        last = key
    if source.num_left > 0:
        raise source.corrupt(f"{source.num_left} bytes stand behind the treemap")
    return parts


def _decode_bitmap(source: _Bytes) -> BitMap:
    start = source.position
    _, num_rows, has_runs = _read_head(source)
    lengths = np.where(num_rows > _LONGEST_ARRAY, _BITSET_BYTES, num_rows * _U16.itemsize)
    if not has_runs.any():
        source.take(int(lengths.sum()))
    else:
        for length, is_run in zip(lengths.tolist(), has_runs.tolist(), strict=True):
            num_runs = int(source.numbers(1)[0]) if is_run else 0
            source.take(num_runs * 2 * _U16.itemsize if is_run else length)
    return bitmap_from_bytes(source.since(start), source.path)


def _decode_runs(source: _Bytes) -> OffsetRuns:
    keys, num_rows, has_runs = _read_head(source)
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for key, rows, is_run in zip(keys.tolist(), num_rows.tolist(), has_runs.tolist(), strict=True):
        its_starts, its_ends = _read_container(source, rows, is_run=is_run)
        starts.append(its_starts + key * _CONTAINER_ROWS)
        ends.append(its_ends + key * _CONTAINER_ROWS)
    return _joined(np.concatenate(starts), np.concatenate(ends))


def _read_head(
    source: _Bytes,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return key and number of rows of each container, and whether it holds runs."""
    num_containers, has_runs = _read_cookie(source)
    header = source.numbers(2 * num_containers).reshape(-1, 2)
    keys, num_rows = header[:, 0], header[:, 1] + 1
    if (np.diff(keys) <= 0).any():
        raise source.corrupt("containers are out of order")
    if not has_runs.any() or num_containers >= _FEW_CONTAINERS:
        source.take(num_containers * _U32.itemsize)  # positions of containers that lie in a row
    return keys, num_rows, has_runs


def _read_cookie(source: _Bytes) -> tuple[int, NDArray[np.bool_]]:
    """Return the number of containers, and which of them hold runs."""
    (cookie,) = _WORD.unpack(source.take(_WORD.size))
    if cookie & ((1 << _COOKIE_BITS) - 1) == _WITH_RUNS:
        count = (cookie >> _COOKIE_BITS) + 1
        bits = np.frombuffer(source.take(-(-count // 8)), np.uint8)
        return count, np.unpackbits(bits, count=count, bitorder="little").astype(np.bool_)
    if cookie != _WITHOUT_RUNS:
        raise source.corrupt(f"{cookie:#x} begins no roaring bitmap")
    (count,) = _WORD.unpack(source.take(_WORD.size))
    if count > _CONTAINER_ROWS:
        raise source.corrupt(f"{count} containers")
    return count, np.zeros(count, np.bool_)


def _read_container(
    source: _Bytes, num_rows: int, *, is_run: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if is_run:
        starts, ends = _read_runs(source)
    elif num_rows <= _LONGEST_ARRAY:
        rows = source.numbers(num_rows)
        if (np.diff(rows) <= 0).any():
            raise source.corrupt("rows are out of order")
        starts, ends = rows, rows + 1
    else:
        bits = np.unpackbits(np.frombuffer(source.take(_BITSET_BYTES), np.uint8), bitorder="little")
        edges = np.diff(bits.astype(np.int8), prepend=np.int8(0), append=np.int8(0))
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if int((ends - starts).sum()) != num_rows:
        raise source.corrupt(f"a container of {num_rows} rows has {(ends - starts).sum()}")
    return starts, ends


def _read_runs(source: _Bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    (count,) = source.numbers(1).tolist()
    pairs = source.numbers(2 * count).reshape(-1, 2)
    starts, ends = pairs[:, 0], pairs.sum(axis=1) + 1
    if (starts[1:] < ends[:-1]).any() or (ends > _CONTAINER_ROWS).any():
        raise source.corrupt("runs overlap or leave their container")
    return starts, ends


def _joined(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> OffsetRuns:
    """Join runs that touch."""
    is_first = np.ones(len(starts), np.bool_)
    is_first[1:] = starts[1:] != ends[:-1]
    is_last = np.ones(len(ends), np.bool_)
    is_last[:-1] = is_first[1:]
    return OffsetRuns(starts[is_first], ends[is_last])
