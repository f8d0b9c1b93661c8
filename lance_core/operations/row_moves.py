"""Where rows are that index files name, once deferred compactions and one to come are over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.index.row_routes import AddressRoute, RowIdRoute
from lance_core.table.reuse_history import ReuseHistory, ReuseVersion, check_order
from lance_core.table.reuse_map import AddressMap
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.index.row_routes import RowRoute
    from lance_core.index.scalar.segment import RowNames
    from lance_core.table.files import TableFiles
    from lance_core.table.reuse_history import ReuseGroup
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class RowMoves:
    """What compactions do to the rows and to the coverage of segments.

    Parameters
    ----------
    files, snapshot
        Opened files, and the version that has the segments.
    history
        Deferred compactions of the version, and behind them the one that is to be committed.
    addresses
        Leads addresses through the history.
    num_rows
        Physical rows of the fragments that there are then, by id.
    """

    files: TableFiles
    snapshot: Snapshot
    history: ReuseHistory
    addresses: AddressMap
    num_rows: Mapping[int, int]

    @classmethod
    def of(
        cls, files: TableFiles, snapshot: Snapshot, groups: Sequence[ReuseGroup] = ()
    ) -> RowMoves:
        """Find the moves up to a version, and by a compaction of it.

        Parameters
        ----------
        files, snapshot
            Opened files, and the version.
        groups
            What is to be compacted.

        Raises
        ------
        CorruptFileError
            The history contradicts the format.
        UnsupportedFeatureError
            It is tagged.
        """
        path = snapshot.manifest.path
        history = reuse_of(snapshot.scheduler, snapshot.manifest)
        num_rows: dict[int, int] = {each.id: each.physical_rows for each in snapshot.fragments}
        if len(groups) > 0:
            compaction = ReuseVersion(snapshot.version, tuple(groups))
            history = ReuseHistory((*history.versions, compaction))
            check_order(history, path)
            for group in groups:
                num_rows |= {each.id: each.physical_rows for each in group.new_fragments}
                for each in group.old_fragments:
                    del num_rows[each.id]
        return cls(files, snapshot, history, AddressMap(history, path), num_rows)

    def coverage(self, stored: BitMap) -> BitMap:
        """Return the fragments that a segment of some stored coverage covers then."""
        return self.history.fold(stored) & BitMap(self.num_rows)

    def route(self, stored: BitMap, names_rows_by: RowNames) -> RowRoute:
        """Return the route of the rows of a segment.

        Parameters
        ----------
        stored
            Its coverage as the manifest has it.
        names_rows_by
            How its files name rows.

        Raises
        ------
        CorruptFileError
            Row ids or deleted rows cannot be read.
        """
        covered = self.coverage(stored)
        if names_rows_by == "row_id" and self.snapshot.has_stable_row_ids:
            return RowIdRoute(row_id_index(self.files, self.snapshot), set(covered))
        old_rows: dict[int, int] = {
            digest.id: digest.physical_rows
            for version in self.history.versions
            for group in version.groups
            for digest in group.old_fragments
        }
        deleted: dict[int, BitMap] = {
            each.id: self.files.deleted(self.snapshot, each)
            for each in self.snapshot.fragments
            if each.id in covered and each.deletion_file is not None
        }
        return AddressRoute(
            self.addresses, old_rows, {each: self.num_rows[each] for each in covered}, deleted
        )
