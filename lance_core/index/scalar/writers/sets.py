"""Sorted rows -> for each distinct value the serialized set of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.scalar.keys import keys_of
from lance_core.index.scalar.writers.growing_set import GrowingSet
from lance_core.kernels.set_bytes import measure_sets, write_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.writers.indexed_rows import IndexedRows

_ROWS_AT_ONCE = 1 << 20
"""Of so many rows sets are written together, which takes some 30 bytes for each at most."""


@dataclass(frozen=True, slots=True, eq=False)
class KeySets:
    """Some keys in their order, and the serialized set of the rows of each."""

    keys: pa.Array
    sets: pa.BinaryArray


@dataclass(frozen=True, slots=True, eq=False)
class SetForm:
    """How a set is serialized.

    Parameters
    ----------
    has_lengths
        Whether bitmaps have their length before them, see `measure_sets`.
    encode
        Serializes one set.
    """

    has_lengths: bool
    encode: Callable[[FragmentRows], bytes]


def key_sets(rows: Iterable[IndexedRows], form: SetForm) -> Iterator[KeySets]:
    """Yield keys and their sets, null first, then by ascending value.

    Parameters
    ----------
    rows
        As `sort_rows` yields them. A row may have a value more than once.
    form
        How sets are serialized.

    Notes
    -----
    Sets that lie within a piece are written by a kernel. A set that goes on from one piece to the
    next is kept as bitmaps until it is complete.
    """
    open_set: _OpenSet | None = None
    for piece in _bounded(rows):
        starts = _starts(piece.values)
        if open_set is not None:
            if open_set.is_continued_by(piece.values):
                stop = int(starts[1]) if len(starts) > 1 else len(piece)
                open_set.add(piece.names[:stop])
                starts = starts[1:]
            if len(starts) == 0:
                continue
            yield open_set.closed(form)
        first, last = int(starts[0]), int(starts[-1])
        if last > first:
            yield _whole_sets(piece.part(first, last), starts[:-1] - first, form)
        open_set = _OpenSet(piece.values.slice(last, 1))
        open_set.add(piece.names[last:])
    if open_set is not None:
        yield open_set.closed(form)


class _OpenSet:
    """The rows of a key of which more may come."""

    def __init__(self, key: pa.Array) -> None:
        self._key = key
        self._rows = GrowingSet()

    def is_continued_by(self, values: pa.Array) -> bool:
        return len(_starts(pa.concat_arrays([self._key, values.slice(0, 1)]))) == 1

    def add(self, names: NDArray[np.uint64]) -> None:
        self._rows.add(names)

    def closed(self, form: SetForm) -> KeySets:
        return KeySets(self._key, pa.array([form.encode(self._rows.rows)], pa.binary()))


def _bounded(rows: Iterable[IndexedRows]) -> Iterator[IndexedRows]:
    for piece in rows:
        for start in range(0, len(piece), _ROWS_AT_ONCE):
            yield piece.part(start, min(start + _ROWS_AT_ONCE, len(piece)))


def _starts(values: pa.Array) -> NDArray[np.int64]:
    """Return where values differ from the one before; nulls come first."""
    num_nulls = values.null_count
    behind = keys_of(values.slice(num_nulls)).starts() + num_nulls
    return behind if num_nulls == 0 else np.concatenate([[0], behind])


def _whole_sets(rows: IndexedRows, starts: NDArray[np.int64], form: SetForm) -> KeySets:
    keys = rows.values.take(pa.array(starts))
    names, bounds = _distinct(rows.names, np.append(starts, len(rows)))
    sizes = np.empty(len(starts), np.int64)
    measure_sets(names, bounds, form.has_lengths, sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = np.zeros(offsets[-1], np.uint8)
    write_sets(names, bounds, form.has_lengths, offsets[:-1], data)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return KeySets(keys, pa.Array.from_buffers(pa.binary(), len(starts), buffers))


def _distinct(
    names: NDArray[np.uint64], bounds: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return names that ascend in each set, each once, and where sets begin and end."""
    is_first = np.zeros(len(names), np.bool_)
    is_first[bounds[:-1]] = True
    if ((names[1:] < names[:-1]) & ~is_first[1:]).any():  # row ids need not ascend with addresses
        names = names[np.lexsort((names, np.cumsum(is_first)))]
    is_kept = is_first.copy()
    is_kept[1:] |= names[1:] != names[:-1]
    if is_kept.all():
        return np.array(names), bounds
    places = np.concatenate([[0], np.cumsum(is_kept)])
    return names[is_kept], places[bounds]
