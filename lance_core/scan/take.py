"""Reading rows by their addresses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import PlainValues, as_array
from lance_core.errors import InvalidRequestError
from lance_core.ids import FragmentId
from lance_core.io.metering import current_meter
from lance_core.io.waiting import for_each
from lance_core.kernels.row_addresses import by_fragment, largest_of_one_fragment
from lance_core.row_address import OFFSET_BITS, offset_of
from lance_core.scan.assemble import arrays_of, record_batch
from lance_core.scan.live_rows import LiveRows
from lance_core.scan.projection import PseudoColumn
from lance_core.scan.pseudo_values import FragmentPseudoValues
from lance_core.scan.rows import first_ranks
from lance_core.scan.stored_rows import StoredRows, is_whole, take_values, take_whole
from lance_core.table.files import place_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.file.columns import ColumnTarget
    from lance_core.file.reader import LanceFileReader
    from lance_core.scan.projection import Projection
    from lance_core.scan.pseudo_values import PseudoValues
    from lance_core.table.files import PlacedColumns, TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_MAX_PLACED = 4096


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of one fragment: ``positions`` in the request and ``row_offsets``, both ``(n,)``.

    A slice of everything stands for the positions of the only group.
    """

    fragment: Fragment
    positions: NDArray[np.int64] | slice
    row_offsets: NDArray[np.int64]


def take_rows(
    files: TableFiles,
    snapshot: Snapshot,
    row_addresses: NDArray[np.uint64],
    projection: Projection,
    *,
    check_live: bool = False,
) -> pa.Table:
    """Read the rows at ``row_addresses``.

    Parameters
    ----------
    files
        Opened files.
    row_addresses
        Shape ``(n,)``. Addresses of live rows, in any order, repeats allowed.
    projection
        Columns of the result.
    check_live
        Look the rows up in the deletion files. Rows that a search has found are live already.

    Returns
    -------
    pa.Table
        One row per address, in the order given.

    Raises
    ------
    InvalidRequestError
        An address names no row of the snapshot, or a deleted one with ``check_live``.
    CorruptFileError
        A file is missing, contradicts the manifest, or cannot be decoded.
    UnsupportedFeatureError
        A column or file needs a feature that this release lacks.
    """
    if len(row_addresses) == 0:
        return projection.schema.empty_table()
    groups = _group(snapshot, row_addresses)
    if check_live:
        _refuse_deleted(files, snapshot, groups)
    taker = RowTaker(files, snapshot, projection)
    stored = taker.take_stored(groups)
    pseudo = taker.pseudo_values(groups, row_addresses)
    batch = record_batch(projection, stored, pseudo, len(row_addresses))
    return pa.Table.from_batches([batch])


class RowTaker:
    """Takes rows with one projection again and again; safe to share between threads.

    It remembers which files hold all the columns, and no file: the cache owns these. While the
    cache is not half full, what it has used last does not matter, and a file that is alive is used
    as it is.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version.
    projection
        Columns of the result.
    """

    def __init__(self, files: TableFiles, snapshot: Snapshot, projection: Projection) -> None:
        self._files = files
        self._snapshot = snapshot
        self._projection = projection
        self._placed: dict[FragmentId, tuple[PlacedColumns, ...]] = {}
        self._whole: dict[FragmentId, tuple[ref[LanceFileReader], Sequence[ColumnTarget]]] = {}

    def take(self, row_addresses: NDArray[np.uint64]) -> list[pa.Array | pa.ChunkedArray]:
        """Return the columns of live rows, one value per address; errors as ``take_rows``."""
        return [as_array(column) for column in self.take_values(row_addresses)]

    def take_values(
        self, row_addresses: NDArray[np.uint64]
    ) -> list[pa.Array | pa.ChunkedArray | PlainValues]:
        """Return the same columns, with no array made of those that are plain values."""
        if len(row_addresses) == 0:
            columns: list[pa.ChunkedArray] = self._projection.schema.empty_table().columns
            return columns
        groups = _group(self._snapshot, row_addresses)
        known = self._known(groups[0].fragment) if len(groups) == 1 else None
        stored = (
            self.take_stored(groups)
            if known is None
            else take_values(*known, groups[0].row_offsets)
        )
        return arrays_of(self._projection, stored, self.pseudo_values(groups, row_addresses))

    def pseudo_values(
        self, groups: list[_Group], row_addresses: NDArray[np.uint64]
    ) -> PseudoValues:
        """Return the pseudo columns of the projection, rows in the order of the request."""
        wanted = self._projection.pseudo_columns
        values: PseudoValues = {
            column: np.empty(len(row_addresses), np.uint64) for column in wanted
        }
        for group in groups if values else ():
            held = FragmentPseudoValues(self._files, self._snapshot, group.fragment, wanted)
            for column, its_values in held.at(group.row_offsets).items():
                values[column][group.positions] = its_values
        if PseudoColumn.ROW_OFFSET in values:
            ranks = live_ranks(self._files, self._snapshot, row_addresses)
            values[PseudoColumn.ROW_OFFSET] = ranks.astype(np.uint64)
        return values

    def take_stored(self, groups: list[_Group]) -> list[pa.Array]:
        """Return one array per field of the projection, rows in the order of the request."""
        if not self._projection.fields:
            return []
        parts = for_each(self._snapshot.scheduler.store, self._take_group, groups)
        if len(parts) == 1:
            return parts[0]
        numbered = np.arange(sum(len(group.row_offsets) for group in groups))
        order = np.concatenate([numbered[group.positions] for group in groups])
        columns = [pa.concat_arrays(column) for column in zip(*parts, strict=True)]
        if bool((order == numbered).all()):
            return columns
        place = np.empty_like(order)
        place[order] = numbered
        indices = pa.array(place)
        return [column.take(indices) for column in columns]

    def _take_group(self, group: _Group) -> list[pa.Array]:
        known = self._known(group.fragment)
        if known is not None:
            return take_whole(*known, group.row_offsets)
        return self._open(group.fragment).take(group.row_offsets)

    def _known(self, fragment: Fragment) -> tuple[LanceFileReader, Sequence[ColumnTarget]] | None:
        """Return the file that holds all columns of a fragment, if it is alive."""
        known = self._whole.get(fragment.id)
        if known is None or self._files.cache.is_half_full:
            return None
        reader = known[0]()
        if reader is None:
            return None
        current_meter().cache_hits += 1
        return reader, known[1]

    def _open(self, fragment: Fragment) -> StoredRows:
        placed = self._place(fragment)
        columns = self._files.open_columns(self._snapshot, fragment, placed)
        if len(columns) == 1 and is_whole(columns[0], self._projection.fields):
            self._whole[fragment.id] = (ref(columns[0].reader), columns[0].targets)
        return StoredRows(self._projection.fields, columns)

    def _place(self, fragment: Fragment) -> tuple[PlacedColumns, ...]:
        placed = self._placed.get(fragment.id)
        if placed is None:
            placed = place_columns(fragment, self._projection.fields)
            if len(self._placed) >= _MAX_PLACED:
                self._placed.clear()
                self._whole.clear()
            self._placed[fragment.id] = placed
        return placed


def live_ranks(
    files: TableFiles, snapshot: Snapshot, row_addresses: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the rank of each row among the live rows of the table, shape ``(n,)``.

    Reads the deletion files of the fragments that the rows lie in.
    """
    first = first_ranks(files, snapshot)
    ranks = np.empty(len(row_addresses), np.int64)
    for group in _group(snapshot, row_addresses):
        fragment = group.fragment
        live = LiveRows(fragment.physical_rows, files.deleted(snapshot, fragment))
        ranks[group.positions] = first[fragment.id] + live.ranks(group.row_offsets)
    return ranks


def _group(snapshot: Snapshot, row_addresses: NDArray[np.uint64]) -> list[_Group]:
    """Group rows by fragment, ascending; within a group the order of the request stays."""
    row_offsets = offset_of(row_addresses).astype(np.int64)
    largest = largest_of_one_fragment(row_addresses)
    if largest is not None:  # the usual case, worth a short way
        return [_checked_group(snapshot, largest, slice(None), row_offsets)]
    order, ends = by_fragment(row_addresses)
    parts = [order[start:end] for start, end in pairwise([0, *ends])]
    return [
        _checked_group(snapshot, int(row_addresses[part].max()), part, row_offsets[part])
        for part in parts
    ]


def _checked_group(
    snapshot: Snapshot,
    largest: int,
    positions: NDArray[np.int64] | slice,
    row_offsets: NDArray[np.int64],
) -> _Group:
    """Check the rows of one fragment, by the largest of their addresses."""
    fragment_id, largest_offset = divmod(largest, 1 << OFFSET_BITS)
    fragment = snapshot.fragments_by_id.get(FragmentId(fragment_id))
    if fragment is None:
        raise InvalidRequestError(
            f"row {largest} is no row of version {snapshot.version}: there is no fragment"
            f" {fragment_id}"
        )
    if largest_offset >= fragment.physical_rows:
        raise InvalidRequestError(
            f"row {largest} is no row of version {snapshot.version}: fragment {fragment_id} has"
            f" {fragment.physical_rows} rows"
        )
    return _Group(fragment, positions, row_offsets)


def _refuse_deleted(files: TableFiles, snapshot: Snapshot, groups: list[_Group]) -> None:
    for group in groups:
        deleted = files.deleted(snapshot, group.fragment)
        for row_offset in group.row_offsets.tolist() if len(deleted) > 0 else ():
            if row_offset in deleted:
                raise InvalidRequestError(
                    f"row {row_offset} of fragment {group.fragment.id} is deleted"
                )
