"""Reading the live rows that pass a test: its columns first, the others only for such rows."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from lance_core.file.file_scan import NUM_THREADS
from lance_core.file.windows import SharedDictionaries, cut_batches
from lance_core.io.ahead import ahead
from lance_core.scan.fragment_columns import FragmentColumns
from lance_core.scan.late_columns import split_columns
from lance_core.scan.live_rows import LiveRows
from lance_core.scan.projection import Projection
from lance_core.scan.row_windows import RowWindow, bytes_of_rows, sizes_for

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.file.windows import WindowSizes
    from lance_core.scan.late_columns import SplitColumns
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_TEST_BYTES = 1 << 20
"""What is judged at a time: so little that its memory is used again and again."""
_LATE_BYTES = 8 << 20
"""What is returned at a time: so much that reading many columns pays."""
_READ_AHEAD = 2
"""Windows that are judged or under way beside the one in use."""
_SHORT_S = 0.1
"""Scans that take no longer gain nothing from threads, which wait for the GIL in every step."""
_NOTHING = Projection(())


class RowTest(Protocol):
    """Tells which rows pass; used by several threads at a time."""

    @property
    def projection(self) -> Projection:
        """The columns that it looks at."""

    def holds(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Tell for each row whether it passes; no nulls."""

    def known(self, fragment: Fragment) -> ChosenRows | None:
        """Return the live rows of a fragment that pass, None if they have to be judged."""


class ChosenRows(Protocol):
    """Some rows of one fragment."""

    def __len__(self) -> int: ...

    def row_offsets(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return those of places ``[start, stop)``, in ascending order."""


@dataclass(slots=True)
class ScanTally:
    """How far a scan is: rows that were judged, rows found to pass, rows handed out."""

    judged: int = 0
    passed: int = 0
    returned: int = 0


def scan_passing(
    files: TableFiles,
    snapshot: Snapshot,
    projection: Projection,
    test: RowTest,
    tally: ScanTally,
    *,
    limit: int | None = None,
    offset: int = 0,
    fragment_ids: Container[int] | None = None,
    batch_rows: int = 8192,
    batch_bytes: int = 8 << 20,
) -> Iterator[pa.RecordBatch]:
    """Read live rows that pass a test, fragments and rows in the order of the table.

    Memory is bounded by windows of some megabytes, and little is read behind the last row wanted.

    Parameters
    ----------
    files
        Opened files.
    projection
        Columns of the result.
    test
        Tells which rows pass.
    tally
        Told how far the scan is.
    limit
        Most rows to return; None = all.
    offset
        Rows that pass to skip first; of them only the columns of the test are read.
    fragment_ids
        Read only these fragments; None = all.
    batch_rows, batch_bytes
        Largest batch; a batch never spans fragments, and a single row may have more bytes.

    Raises
    ------
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks.
    """
    scan = _PassingScan(files, snapshot, projection, test, batch_rows, fragment_ids)
    scan.to_skip = offset
    scan.wanted = sys.maxsize if limit is None else limit
    dictionaries = SharedDictionaries(projection.schema)
    if scan.wanted == 0:
        return
    for window in ahead(scan.windows(), num_threads=NUM_THREADS, depth=scan.depth):
        tally.judged += window.num_judged
        tally.passed += len(window)
        skipped = min(scan.to_skip, len(window))
        scan.to_skip -= skipped
        for arrays in window.pieces(skipped, min(len(window), skipped + scan.wanted)):
            batch = dictionaries.window(arrays)
            scan.wanted -= batch.num_rows
            tally.returned += batch.num_rows
            yield from cut_batches(batch, batch_rows, batch_bytes)
        if scan.wanted == 0:
            return


class _PassingScan:
    """What the windows of a scan share: sizes, which they learn, and how far it is.

    ``to_skip`` rows that pass and then ``wanted`` ones are what is left to do.
    """

    def __init__(
        self,
        files: TableFiles,
        snapshot: Snapshot,
        projection: Projection,
        test: RowTest,
        batch_rows: int,
        fragment_ids: Container[int] | None,
    ) -> None:
        self.to_skip = 0
        self.wanted = sys.maxsize
        self._files = files
        self._snapshot = snapshot
        self._test = test
        self._projection = projection
        self._batch_rows = batch_rows
        self._fragment_ids = fragment_ids
        self._share = 0.0
        self._row_seconds = 0.0

    @cached_property
    def _judged(self) -> SplitColumns:
        return split_columns(self._test.projection, self._projection)

    @cached_property
    def _known(self) -> SplitColumns:
        return split_columns(_NOTHING, self._projection)

    @cached_property
    def _test_sizes(self) -> WindowSizes:
        return sizes_for(self._test.projection, self._batch_rows, _TEST_BYTES)

    @cached_property
    def _late_sizes(self) -> WindowSizes:
        return sizes_for(self._judged.late, self._batch_rows, _LATE_BYTES)

    @cached_property
    def _known_sizes(self) -> WindowSizes:
        return sizes_for(self._projection, self._batch_rows, _LATE_BYTES)

    def depth(self) -> int:
        """Return how many windows to judge ahead, by what the first one took."""
        num_rows = sum(each.physical_rows for each in self._snapshot.fragments)
        return 0 if num_rows * self._row_seconds < _SHORT_S else _READ_AHEAD

    def windows(self) -> Iterator[Callable[[], RowWindow]]:
        """Yield what finds the rows of a window; opens files when it gets there."""
        first_rank = 0
        for fragment in self._snapshot.fragments:
            if self._fragment_ids is None or fragment.id in self._fragment_ids:
                yield from self._windows_of(fragment, first_rank)
            first_rank += self._files.num_live_rows(self._snapshot, fragment)

    def _windows_of(self, fragment: Fragment, first_rank: int) -> Iterator[Callable[[], RowWindow]]:
        known = self._test.known(fragment)
        if known is None:
            yield from self._judged_windows(fragment, first_rank)
        elif len(known) > 0:
            yield from self._known_windows(fragment, first_rank, known)

    def _known_windows(
        self, fragment: Fragment, first_rank: int, known: ChosenRows
    ) -> Iterator[Callable[[], RowWindow]]:
        columns = self._columns(fragment, self._known.late, first_rank)
        sizes = self._known_sizes

        def find(first: int, last: int) -> RowWindow:
            row_offsets = known.row_offsets(first, last)
            return self._begun(
                RowWindow(self._known, columns, row_offsets, [], sizes, num_judged=0)
            )

        for first, last in sizes.windows(0, len(known), bytes_of_rows(columns.row_bytes)):
            yield partial(find, first, last)

    def _judged_windows(
        self, fragment: Fragment, first_rank: int
    ) -> Iterator[Callable[[], RowWindow]]:
        early = self._columns(fragment, self._judged.early, first_rank)
        late = self._columns(fragment, self._judged.late, first_rank)

        def stored_bytes(first: int, last: int) -> float:
            late_bytes = self._share * late.row_bytes * (last - first)
            return max(early.stored_bytes(first, last), late_bytes * _TEST_BYTES / _LATE_BYTES)

        for first, last in self._test_sizes.windows(0, len(early.live), stored_bytes):
            yield partial(self._judge, early, late, first, last)

    def _judge(
        self, early: FragmentColumns, late: FragmentColumns, first: int, last: int
    ) -> RowWindow:
        """Find those of the live rows of ranks ``[first, last)`` that pass."""
        began = time.perf_counter()
        split, rows = self._judged, early.live.select(first, last)
        read = self._test_sizes.measured(
            first, last, early.stored_bytes, lambda *_: early.read(rows)
        )
        arrays = read()
        passes = self._test.holds(_batch(arrays, split.early))
        shared = [arrays[place] for place in split.shared]
        if passes.true_count == len(rows):
            row_offsets = rows.row_offsets
        else:
            positions = _positions(passes)
            row_offsets = rows.chosen(positions)
            kept = pa.array(positions)
            shared = [array.take(kept) for array in shared]
        self._share = len(row_offsets) / (last - first)
        window = self._begun(
            RowWindow(split, late, row_offsets, shared, self._late_sizes, num_judged=last - first)
        )
        self._row_seconds = (time.perf_counter() - began) / (last - first)
        return window

    def _begun(self, window: RowWindow) -> RowWindow:
        """Return a window with its first rows read, unless they may have to be skipped."""
        if self.to_skip == 0:
            window.begin(min(len(window), self.wanted))
        return window

    def _columns(
        self, fragment: Fragment, projection: Projection, first_rank: int
    ) -> FragmentColumns:
        deleted = self._files.deleted(self._snapshot, fragment)
        live = LiveRows(fragment.physical_rows, deleted)
        return FragmentColumns(self._files, self._snapshot, fragment, projection, live, first_rank)


def _batch(arrays: Sequence[pa.Array], projection: Projection) -> pa.RecordBatch:
    if len(projection.columns) == 0:
        return pa.RecordBatch.from_struct_array(arrays[0])
    return pa.RecordBatch.from_arrays(arrays, schema=projection.schema)


def _positions(flags: pa.BooleanArray) -> NDArray[np.int64]:
    """Return where flags are set; in half the time of turning them into an array of numpy."""
    bits = np.frombuffer(flags.buffers()[1], np.uint8)
    spread = np.unpackbits(bits, count=flags.offset + len(flags), bitorder="little")
    return np.flatnonzero(spread[flags.offset :].view(np.bool_))
