"""Sorting rows by value in bounded memory: sorted runs on disk, which are merged."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.scalar.keys import keys_of
from lance_core.index.scalar.writers.indexed_rows import IndexedRows, joined
from lance_core.io.spill import spill_folder, spilling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from lance_core.index.scalar.keys import Keys

_SHARE = 6
"""Of memory: a run has so small a part, since its keys, their order and a copy take room too."""

_MAX_RUN_BYTES = 256 << 20
_BLOCKS_OF_RUN = 64
_NAME_BYTES = 8
_NULLS_FILE = "nulls"


def sort_rows(rows: Iterable[IndexedRows], memory_bytes: int) -> Iterator[IndexedRows]:
    """Yield rows by ascending value, those without one first.

    Parameters
    ----------
    rows
        Pieces of one type; read once.
    memory_bytes
        About how much memory may be taken. Rows that do not fit are kept in a temporary folder,
        which is gone when the iterator is exhausted or closed.

    Yields
    ------
    IndexedRows
        Pieces that have only nulls, then others that have none; none is empty. Rows of equal values
        are in their own order if all fit in memory, else in none.

    Raises
    ------
    UnusableSegmentError
        Values of the type have no order.
    StoreUnavailableError
        There is no room for what does not fit in memory.

    Notes
    -----
    Of each run a block is held while runs are merged: memory grows beyond what was asked for where
    there are more than some hundred runs.
    """
    run_bytes = min(max(memory_bytes // _SHARE, 1), _MAX_RUN_BYTES)
    with ExitStack() as stack:
        sorter = _Sorter(run_bytes, stack)
        for piece in rows:
            sorter.add(piece)
        yield from sorter.sorted_rows()


class _Sorter:
    """Rows that are waiting, and runs that were written; files go with ``stack``."""

    def __init__(self, run_bytes: int, stack: ExitStack) -> None:
        self._run_bytes = run_bytes
        self._stack = stack
        self._folder: Path | None = None
        self._num_runs = 0
        self._waiting: list[IndexedRows] = []
        self._null_names: list[NDArray[np.uint64]] = []
        self._num_bytes = 0
        self._type = pa.null()

    def add(self, piece: IndexedRows) -> None:
        """Take rows; writes a run when enough are waiting."""
        self._type = piece.values.type
        nulls, rest = piece.split_nulls()
        if len(nulls) > 0:
            self._null_names.append(nulls)
        if len(rest) > 0:
            self._waiting.append(rest)
        self._num_bytes += rest.nbytes + nulls.nbytes
        if self._num_bytes >= self._run_bytes:
            self._spill()

    def sorted_rows(self) -> Iterator[IndexedRows]:
        """Yield all rows, see `sort_rows`."""
        if self._folder is None:
            yield from self._nulls_of(self._null_names)
            if len(self._waiting) > 0:
                yield _in_order(joined(self._waiting))
            return
        self._spill()
        yield from self._nulls_of(_stored_names(self._folder / _NULLS_FILE, self._run_bytes))
        yield from merge_rows([_rows_in(self._run_file(n)) for n in range(self._num_runs)])

    def _nulls_of(self, names: Iterable[NDArray[np.uint64]]) -> Iterator[IndexedRows]:
        for each in names:
            yield IndexedRows(pa.nulls(len(each), self._type), each)

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = self._stack.enter_context(spill_folder())
        with spilling(), (self._folder / _NULLS_FILE).open("ab") as file:
            for names in self._null_names:
                file.write(names.tobytes())
        if len(self._waiting) > 0:
            self._write_run(_in_order(joined(self._waiting)))
        self._waiting, self._null_names, self._num_bytes = [], [], 0

    def _write_run(self, rows: IndexedRows) -> None:
        schema = pa.schema([("values", rows.values.type), ("names", pa.uint64())])
        with spilling(), pa.OSFile(str(self._run_file(self._num_runs)), "wb") as file:
            columns = [rows.values, pa.array(rows.names)]
            batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            with pa.ipc.new_file(file, schema) as writer:
                step = max(len(rows) // _BLOCKS_OF_RUN, 1)
                for start in range(0, len(rows), step):
                    writer.write_batch(batch.slice(start, step))
        self._num_runs += 1

    def _run_file(self, number: int) -> Path:
        if self._folder is None:
            raise AssertionError  # there are no runs without a folder
        return self._folder / f"run-{number}"


def merge_rows(runs: Iterable[Iterator[IndexedRows]]) -> Iterator[IndexedRows]:
    """Merge runs of rows that are sorted by value.

    Parameters
    ----------
    runs
        Pieces of one type without nulls, none of them empty; of each run a piece is held at a time.

    Yields
    ------
    IndexedRows
        All rows by ascending value; no piece is empty.
    """
    held = [run for run in map(_Run, runs) if run.refill()]
    while len(held) > 0:
        # What is not above the least of their last values can be passed on.
        lasts = keys_of(pa.concat_arrays([run.last_value() for run in held]))
        least = int(lasts.order()[0])
        bound = lasts.part(least, least + 1)
        pieces = [piece for piece in (run.take_until(bound) for run in held) if len(piece) > 0]
        yield _in_order(joined(pieces))
        held = [run for run in held if run.refill()]


class _Run:
    """A run of rows, of which a piece is held; it ends with no rows left."""

    def __init__(self, pieces: Iterator[IndexedRows]) -> None:
        self._pieces = pieces
        self._rows = IndexedRows(pa.nulls(0), np.zeros(0, np.uint64))
        self._keys: Keys

    def refill(self) -> bool:
        """Take the next piece if nothing is left of the last; tell whether there are rows."""
        if len(self._rows) == 0:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self._rows = piece
            self._keys = keys_of(piece.values)
        return True

    def last_value(self) -> pa.Array:
        """Return the greatest value that is held."""
        return self._rows.values.slice(len(self._rows) - 1)

    def take_until(self, bound: Keys) -> IndexedRows:
        """Take the rows whose values are not above a bound."""
        stop = int(self._keys.search(bound, is_behind_equals=True)[0])
        taken = self._rows.part(0, stop)
        self._rows = self._rows.part(stop, len(self._rows))
        self._keys = self._keys.part(stop, len(self._keys))
        return taken


def _in_order(rows: IndexedRows) -> IndexedRows:
    return rows.take(keys_of(rows.values).order())


def _rows_in(path: Path) -> Iterator[IndexedRows]:
    with spilling(), pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            yield IndexedRows(batch.column(0), batch.column(1).to_numpy())


def _stored_names(path: Path, num_bytes: int) -> Iterator[NDArray[np.uint64]]:
    with spilling(), path.open("rb") as file:
        while len(data := file.read(-(-num_bytes // _NAME_BYTES) * _NAME_BYTES)) > 0:
            yield np.frombuffer(data, np.uint64)
