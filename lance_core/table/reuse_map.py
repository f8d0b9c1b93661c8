"""Leading row addresses of index files through a reuse history, all versions in one step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.kernels.reuse import (
    ReuseTables,
    bits_of_runs,
    hash_fragments,
    map_through,
    select_runs,
)
from lance_core.row_address import OFFSET_BITS
from lance_core.table.treemap import OffsetRuns, decode_treemap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.table.reuse_history import FragmentDigest, ReuseGroup, ReuseHistory

# Where runs are this long, a search among them costs little, and bits would take far more memory
# than the file: a few bytes there may stand for four billion rows.
_LONG_RUN = 1024
_NO_ROWS = OffsetRuns(np.zeros(0, np.int64), np.zeros(0, np.int64))


class AddressMap:
    """Where the rows of compacted fragments are now.

    Takes about two bits of memory per compacted row, less where few rows were deleted.

    Parameters
    ----------
    history
        Checked, as ``history_from_content`` returns it.
    path
        Where the history was read, for errors.

    Raises
    ------
    CorruptFileError
        The surviving rows of a group are no treemap, or not as many as its fragments say.

    Notes
    -----
    Lance table format, section "Mapping old -> new address". The versions are composed: one look-up
    leads from any fragment that ever was to where its rows are now, however long the history.
    """

    __slots__ = ("_tables",)

    def __init__(self, history: ReuseHistory, path: str) -> None:
        routes: dict[int, _Route] = {}
        for version in reversed(history.versions):
            # A fragment is compacted after it was written, so its own route is there already.
            for group in version.groups:
                for digest, survivors, number in _numbered(group, path):
                    routes[digest.id] = _route(survivors, number, group, routes)
        self._tables = _tables(routes)

    @property
    def nbytes(self) -> int:
        """Memory of the tables."""
        return self._tables.nbytes

    def map_addresses(self, row_addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return where each row is now.

        Parameters
        ----------
        row_addresses
            Shape ``(n,)``, in any order.

        Returns
        -------
        NDArray[np.uint64]
            Shape ``(n,)``. ``ROW_ADDRESS_TOMBSTONE`` for a row that was deleted before it could
            be compacted; rows deleted later have an address, and it is up to the deletion file of
            that fragment to leave them out. Rows of fragments that were never compacted keep
            their address.
        """
        return map_through(np.ascontiguousarray(row_addresses, np.uint64), self._tables)


@dataclass(frozen=True, eq=False)
class _Route:
    """Where the rows of one fragment went in the end.

    ``pieces[i]`` says that the survivors from number ``pieces[i][0]`` on lie one after the other
    from row address ``pieces[i][1]`` on.
    """

    survivors: OffsetRuns
    pieces: tuple[tuple[int, int], ...]

    @cached_property
    def first_numbers(self) -> NDArray[np.int64]:
        """Number of the first survivor of each run, then of all; shape ``(r + 1,)``."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.survivors.lengths)])

    def part(self, start: int, end: int) -> _Route:
        """Return the route of the rows at offsets ``[start, end)``, numbered anew."""
        starts, ends = self.survivors.starts, self.survivors.ends
        first = int(np.searchsorted(ends, start, side="right"))
        stop = int(np.searchsorted(starts, end))
        skipped = int(self.first_numbers[first])
        starts, ends = starts[first:stop].copy(), ends[first:stop].copy()
        if len(starts) > 0:
            skipped += max(start - int(starts[0]), 0)
            starts[0], ends[-1] = max(start, starts[0]), min(end, ends[-1])
        part = OffsetRuns(starts, ends)
        return _Route(part, _cut(self.pieces, skipped, skipped + part.num_rows))


def _cut(pieces: Sequence[tuple[int, int]], first: int, stop: int) -> tuple[tuple[int, int], ...]:
    """Return the pieces of the survivors ``[first, stop)``, numbered anew."""
    following = [number for number, _ in pieces[1:]]
    return tuple(
        (max(number - first, 0), address + max(first - number, 0))
        for (number, address), end in zip(pieces, [*following, stop], strict=False)
        if max(number, first) < min(end, stop)
    )


def _numbered(group: ReuseGroup, path: str) -> Iterator[tuple[FragmentDigest, OffsetRuns, int]]:
    """Yield the old fragments with their survivors and the group's number of the first of these."""
    survivors = decode_treemap(group.changed_row_addrs, path)
    strangers = survivors.keys() - {digest.id for digest in group.old_fragments}
    if strangers:
        raise CorruptFileError(
            path, f"rows of fragment {min(strangers)} survive a compaction of others"
        )
    number = 0
    for digest in group.old_fragments:
        rows = survivors.get(digest.id, _NO_ROWS)
        if rows.num_rows != digest.num_live_rows or rows.span > digest.physical_rows:
            raise CorruptFileError(
                path,
                f"{rows.num_rows} rows of fragment {digest.id} survived up to row {rows.span}; "
                f"it had {digest.physical_rows} rows, {digest.num_deleted_rows} of them deleted",
            )
        yield digest, rows, number
        number += rows.num_rows


def _route(
    survivors: OffsetRuns, number: int, group: ReuseGroup, routes: Mapping[int, _Route]
) -> _Route:
    """Compose the way into the new fragments with the ways that these went themselves."""
    stop = number + survivors.num_rows
    wanted: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    pieces: list[tuple[int, int]] = []
    num_rows = 0
    ends = accumulate(each.physical_rows for each in group.new_fragments)
    for digest, end in zip(group.new_fragments, ends, strict=True):
        start = end - digest.physical_rows
        first, last = max(number, start), min(stop, end)
        if first < last:
            onward = _onward(digest, routes).part(first - start, last - start)
            shift = start - number
            wanted.append((onward.survivors.starts + shift, onward.survivors.ends + shift))
            pieces += [(num_rows + place, address) for place, address in onward.pieces]
            num_rows += onward.survivors.num_rows
    if num_rows == survivors.num_rows:
        return _Route(survivors, tuple(pieces))
    first_numbers, end_numbers = (np.concatenate(arrays) for arrays in zip(*wanted, strict=True))
    runs = select_runs(survivors.starts, survivors.ends, first_numbers, end_numbers)
    return _Route(OffsetRuns(*runs), tuple(pieces))


def _onward(digest: FragmentDigest, routes: Mapping[int, _Route]) -> _Route:
    """Return where a fragment's rows went; those that were not compacted again stay."""
    route = routes.get(digest.id)
    if route is not None:
        return route
    whole = OffsetRuns(np.zeros(1, np.int64), np.full(1, digest.physical_rows, np.int64))
    return _Route(whole, ((0, digest.id << OFFSET_BITS),))


def _tables(routes: Mapping[int, _Route]) -> ReuseTables:
    fragments: list[tuple[int, ...]] = []
    pieces: list[tuple[int, int]] = []
    bits, runs = [np.zeros((0, 2), np.uint64)], [np.zeros((0, 3), np.int64)]
    num_bits = num_runs = 0
    for route in routes.values():
        starts, ends = route.survivors.starts, route.survivors.ends
        end_piece = len(pieces) + len(route.pieces)
        place = (route.survivors.span, len(pieces), end_piece)
        if len(starts) * _LONG_RUN >= route.survivors.span:
            fragments.append((0, num_bits, *place))
            bits.append(bits_of_runs(starts, ends))
            num_bits += len(bits[-1])
        else:
            fragments.append((len(starts), num_runs, *place))
            runs.append(np.column_stack([starts, ends, route.first_numbers[:-1]]))
            num_runs += len(starts)
        pieces.extend(route.pieces)
    return ReuseTables(
        slots=hash_fragments(np.array(list(routes), np.uint32)),
        fragments=np.array(fragments, np.int64).reshape(-1, 5),
        bits=np.concatenate(bits),
        runs=np.concatenate(runs),
        pieces=np.array(pieces, np.uint64).reshape(-1, 2),
    )
