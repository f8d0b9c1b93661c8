"""Bringing coded rows together by partition, in bounded memory: sorted runs on disk."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np

from lance_core.index.cut import cut_groups
from lance_core.index.vector.build.encode import CodedColumn
from lance_core.index.vector.storage import ROW_ID_COLUMN
from lance_core.io.spill import spill_file, spilling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import ExitStack

    from numpy.typing import NDArray

    from lance_core.index.vector.build.budget import Budget

_ROW_IDS = CodedColumn(ROW_ID_COLUMN, np.dtype(np.uint64), None)
_PARTITION_BYTES, _ORDER_BYTES = 4, 8

_WRITE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, eq=False)
class PartitionGroup:
    """All rows of some partitions that follow one another.

    Parameters
    ----------
    lengths
        Shape ``(p,)``: rows of each partition, 0 among them.
    row_ids
        Shape ``(n,)``: partition after partition, ascending in each.
    columns
        By name, in the same order.
    """

    lengths: NDArray[np.int64]
    row_ids: NDArray[np.uint64]
    columns: Mapping[str, NDArray[Any]]


class PartitionRows:
    """Takes coded rows in any order and gives them back by partition.

    Parameters
    ----------
    columns
        What rows have.
    num_partitions
        Number of partitions.
    budget
        What rows may take; what does not fit is put into a temporary file. A partition is held
        whole, whatever its size.
    stack
        The file goes with it.
    """

    def __init__(
        self,
        columns: Sequence[CodedColumn],
        num_partitions: int,
        budget: Budget,
        stack: ExitStack,
    ) -> None:
        self._columns = (_ROW_IDS, *columns)
        self._num_partitions = num_partitions
        self._row_bytes = sum(each.row_bytes for each in self._columns)
        self._budget = budget
        held_bytes = self._row_bytes + _PARTITION_BYTES + _ORDER_BYTES
        capacity = max(budget.waiting_bytes // held_bytes, 1)
        self._waiting = [each.empty(capacity) for each in self._columns]  # taken when written to
        self._partitions = np.empty(capacity, np.uint32)
        self._num_waiting = 0
        self._stack = stack
        self._file: BinaryIO | None = None
        self._runs: list[_Run] = []

    def add(
        self,
        row_ids: NDArray[np.uint64],
        partitions: NDArray[np.uint32],
        columns: Mapping[str, NDArray[Any]],
    ) -> None:
        """Take rows; they are copied.

        Parameters
        ----------
        row_ids
            Shape ``(n,)``.
        partitions
            Shape ``(n,)``, below the number of partitions.
        columns
            By name, shape ``(n, width)`` or ``(n,)``.
        """
        given = [row_ids, *(columns[each.name] for each in self._columns[1:])]
        start = 0
        while start < len(row_ids):
            room = len(self._partitions) - self._num_waiting
            if room == 0:
                self._spill()
                continue
            stop = min(start + room, len(row_ids))
            part = slice(self._num_waiting, self._num_waiting + stop - start)
            for own, values in zip(self._waiting, given, strict=True):
                own[part] = values[start:stop]
            self._partitions[part] = partitions[start:stop]
            self._num_waiting, start = part.stop, stop

    def groups(self, graph_row_bytes: int = 0) -> Iterator[PartitionGroup]:
        """Yield all rows; to be called once, when all were added.

        Parameters
        ----------
        graph_row_bytes
            What is to be made of a partition takes so much for each of its rows: where that is
            more than there is, rows leave memory.
        """
        if self._file is None and not self._needs_room(graph_row_bytes):
            self._runs.append(self._run_in_memory())
        elif self._num_waiting > 0:
            self._spill()
        self._waiting = []  # what is on disk needs its room no longer
        lengths = np.zeros(self._num_partitions, np.int64)
        for run in self._runs:
            lengths += np.diff(run.bounds)
        most = max(self._budget.group_bytes // self._row_bytes, 1)
        for first, stop in pairwise(cut_groups(lengths, most)):
            yield self._group(first, stop)

    def _needs_room(self, graph_row_bytes: int) -> bool:
        counts = np.bincount(self._partitions[: self._num_waiting], minlength=1)
        return int(counts.max()) * graph_row_bytes > self._budget.graph_bytes

    def _group(self, first: int, stop: int) -> PartitionGroup:
        lengths = [np.diff(run.bounds[first : stop + 1]) for run in self._runs]
        numbers = np.arange(stop - first, dtype=np.uint32)
        parts = [np.repeat(numbers, each) for each in lengths]
        partitions = np.concatenate([numbers[:0], *parts])
        columns = [each.empty(len(partitions)) for each in self._columns]
        start = 0
        for run, part in zip(self._runs, parts, strict=True):
            own = [values[start : start + len(part)] for values in columns]
            run.read(first, stop, own)
            start += len(part)
        order = _order(partitions, columns[0])
        if order is not None:
            columns = [_taken(*each, order) for each in zip(self._columns, columns, strict=True)]
        names = [each.name for each in self._columns[1:]]
        counts = np.bincount(partitions, minlength=stop - first).astype(np.int64)
        return PartitionGroup(counts, columns[0], dict(zip(names, columns[1:], strict=True)))

    def _run_in_memory(self) -> _MemoryRun:
        partitions = self._partitions[: self._num_waiting]
        narrow = np.uint16 if self._num_partitions <= 1 << 16 else np.uint32
        order = np.argsort(partitions.astype(narrow), kind="stable")
        counts = np.bincount(partitions, minlength=self._num_partitions)
        return _MemoryRun(np.concatenate([[0], np.cumsum(counts)]), order, self._waiting)

    def _spill(self) -> None:
        if self._file is None:
            self._file = self._stack.enter_context(spill_file())
        run = self._run_in_memory()
        with spilling():
            starts = [_append(self._file, values, run.order) for values in self._waiting]
        self._runs.append(_FileRun(run.bounds, self._file, self._columns, starts))
        self._num_waiting = 0


class _Run(Protocol):
    """Rows that are sorted by partition."""

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Where partitions begin, and the end; shape ``(P + 1,)``."""

    def read(self, first: int, stop: int, columns: Sequence[NDArray[Any]]) -> None:
        """Fill columns with the rows of the partitions ``[first, stop)``."""


@dataclass(frozen=True, slots=True, eq=False)
class _MemoryRun:
    """Rows as they came, and their order."""

    bounds: NDArray[np.int64]
    order: NDArray[np.int64]
    columns: Sequence[NDArray[Any]]

    def read(self, first: int, stop: int, columns: Sequence[NDArray[Any]]) -> None:
        rows = self.order[self.bounds[first] : self.bounds[stop]]
        for values, out in zip(self.columns, columns, strict=True):
            values.take(rows, axis=0, out=out, mode="clip")  # raise copies all once more


@dataclass(frozen=True, slots=True, eq=False)
class _FileRun:
    """Rows in a file, column after column."""

    bounds: NDArray[np.int64]
    file: BinaryIO
    columns: Sequence[CodedColumn]
    starts: Sequence[int]

    def read(self, first: int, stop: int, columns: Sequence[NDArray[Any]]) -> None:
        with spilling():
            for column, start, out in zip(self.columns, self.starts, columns, strict=True):
                self.file.seek(start + int(self.bounds[first]) * column.row_bytes)
                self.file.readinto(out.data)  # type: ignore[attr-defined]  # of a buffered file


def _append(file: BinaryIO, values: NDArray[Any], order: NDArray[np.int64]) -> int:
    """Write rows in some order to the end of a file; return where they begin."""
    begin = file.seek(0, 2)
    step = max(_WRITE_BYTES // (values.nbytes // len(values)), 1)
    pieces = (order[start : start + step] for start in range(0, len(order), step))
    file.writelines(values.take(each, axis=0).data for each in pieces)
    return begin


def _taken(column: CodedColumn, values: NDArray[Any], order: NDArray[np.int64]) -> NDArray[Any]:
    return values.take(order, axis=0, out=column.empty(len(order)), mode="clip")


def _order(partitions: NDArray[np.uint32], row_ids: NDArray[np.uint64]) -> NDArray[np.int64] | None:
    """Return the order by partition and row id, None where rows are in it; equals keep theirs."""
    follows = partitions[1:] > partitions[:-1]
    follows |= (partitions[1:] == partitions[:-1]) & (row_ids[1:] >= row_ids[:-1])
    return None if follows.all() else np.lexsort((row_ids, partitions))
