"""Testing rows by reading the columns that a filter looks at."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.expr.evaluate import evaluate
from lance_core.expr.walk import columns_of
from lance_core.ids import FragmentId
from lance_core.row_address import OFFSET_BITS, fragment_of, offset_of
from lance_core.row_set import bitmap_offsets, num_words
from lance_core.scan.projection import OWN_ADDRESS, resolve_projection, with_address
from lance_core.scan.rows import scan_rows
from lance_core.scan.take import RowTaker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.expr.tree import Node
    from lance_core.query.deadline import Deadline
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

    Flags = NDArray[np.bool_]
    """One for each row offset of a fragment, and some more to fill the last word of a bitset."""

_SCANNED_ROWS = 1 << 16
_TAKEN_ROWS = 1 << 13
_ROWS_SCANNED_PER_TAKEN = 16
"""A row that is read by itself takes as long as so many that are read one after the other."""


class RowJudge:
    """Tells which rows pass a test, at one version.

    Parameters
    ----------
    files, snapshot
        Opened files, and the version.
    test
        The test.
    """

    def __init__(self, files: TableFiles, snapshot: Snapshot, test: Node) -> None:
        self._files = files
        self._snapshot = snapshot
        self._test = test
        self._projection = with_address(resolve_projection(snapshot.schema, columns_of(test)))

    def of_fragments(
        self, fragment_ids: Sequence[FragmentId], deadline: Deadline
    ) -> dict[FragmentId, Flags]:
        """Tell which live rows of some fragments pass, reading all of them."""
        passes = self._nothing_passes(fragment_ids)
        for fragment_id, batch in self._batches(passes):
            self._judge(batch, passes[fragment_id], deadline)
        return passes

    def of_rows(
        self, rows: Mapping[FragmentId, BitMap], deadline: Deadline
    ) -> dict[FragmentId, Flags]:
        """Tell which of some live rows pass.

        Where they are few just they are read, else all rows of the fragment.
        """
        sizes = {each: self._snapshot.fragments_by_id[each].physical_rows for each in rows}
        few = {
            each: own
            for each, own in rows.items()
            if len(own) * _ROWS_SCANNED_PER_TAKEN <= sizes[each]
        }
        passes = self._nothing_passes(list(rows))
        self._take(few, passes, deadline)
        wanted = {each: _flags_of(rows[each], sizes[each]) for each in rows if each not in few}
        for fragment_id, batch in self._batches(wanted):
            offsets = offset_of(batch[OWN_ADDRESS].to_numpy())
            some = batch.filter(pa.array(wanted[fragment_id][offsets]))
            self._judge(some, passes[fragment_id], deadline)
        return passes

    def _nothing_passes(self, fragment_ids: Sequence[FragmentId]) -> dict[FragmentId, Flags]:
        fragments = self._snapshot.fragments_by_id
        return {each: _padded_flags(fragments[each].physical_rows) for each in fragment_ids}

    def _batches(
        self, fragment_ids: Mapping[FragmentId, Flags]
    ) -> Iterator[tuple[FragmentId, pa.RecordBatch]]:
        """Read all live rows of some fragments; a batch lies in one."""
        if not fragment_ids:
            return
        for batch in scan_rows(
            self._files,
            self._snapshot,
            self._projection,
            fragment_ids=fragment_ids,
            batch_rows=_SCANNED_ROWS,
        ):
            first_address = batch[OWN_ADDRESS][:1].to_numpy()
            yield FragmentId(int(fragment_of(first_address)[0])), batch

    def _take(
        self,
        rows: Mapping[FragmentId, BitMap],
        passes: Mapping[FragmentId, Flags],
        deadline: Deadline,
    ) -> None:
        """Read rows one by one, some thousands at a time."""
        taker = RowTaker(self._files, self._snapshot, self._projection)
        names = self._projection.schema.names
        addresses = _addresses(rows)
        for start in range(0, len(addresses), _TAKEN_ROWS):
            deadline.check("filtering rows")
            some = addresses[start : start + _TAKEN_ROWS]
            columns = [_joined(column) for column in taker.take(some)]
            holds = self._holds(pa.RecordBatch.from_arrays(columns, names), deadline)
            for address in np.split(some[holds], _breaks(some[holds])):
                if len(address) > 0:
                    passes[FragmentId(int(fragment_of(address[:1])[0]))][offset_of(address)] = True

    def _judge(self, batch: pa.RecordBatch, passes: Flags, deadline: Deadline) -> None:
        deadline.check("filtering rows")
        if batch.num_rows > 0:
            offsets = offset_of(batch[OWN_ADDRESS].to_numpy())
            passes[offsets] = self._holds(batch, deadline)

    def _holds(self, batch: pa.RecordBatch, deadline: Deadline) -> NDArray[np.bool_]:
        found = evaluate(self._test, batch, partial(deadline.check, "filtering rows"))
        holds: NDArray[np.bool_] = found.fill_null(False).to_numpy(zero_copy_only=False)
        return holds


def _padded_flags(num_rows: int) -> Flags:
    return np.zeros(num_words(num_rows) * 64, np.bool_)


def _flags_of(offsets: BitMap, num_rows: int) -> Flags:
    flags = _padded_flags(num_rows)
    flags[bitmap_offsets(offsets)] = True
    return flags


def _addresses(rows: Mapping[FragmentId, BitMap]) -> NDArray[np.uint64]:
    parts = [np.empty(0, np.uint64)]
    for fragment_id in sorted(rows):
        offsets = bitmap_offsets(rows[fragment_id]).astype(np.uint64)
        parts.append(offsets | np.uint64(fragment_id << OFFSET_BITS))
    return np.concatenate(parts)


def _breaks(addresses: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return where the next fragment begins among ascending addresses."""
    return np.flatnonzero(np.diff(fragment_of(addresses))) + 1


def _joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
