"""What others did to fragments since segments were built from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.table.commits_since import Lineage
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Project,
    ReserveFragments,
    Rewrite,
    Update,
    UpdateConfig,
    UpdateMode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.dataset import Dataset
    from lance_core.table.transaction import Operation

_LEAVES_ALL = (Append, CreateIndex, Delete, Project, ReserveFragments, UpdateConfig)


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """What commits between two versions did to the rows that segments name.

    Parameters
    ----------
    fragments
        Fragments whose rows were moved or got other values.
    lost
        Those whose rows were moved and that no reuse history leads to the new places.
    moves
        Fragments that were compacted together and what they became, in the order of the commits.
    is_everything
        Whether a commit may have done more than can be told by fragments.
    """

    fragments: BitMap = field(default_factory=BitMap)
    lost: BitMap = field(default_factory=BitMap)
    moves: tuple[tuple[BitMap, BitMap], ...] = ()
    is_everything: bool = False

    def is_touched(self, fragments: BitMap) -> bool:
        """Tell whether a segment of fragments, as of the older version, is not as of the newer."""
        return self.is_everything or bool(self.fragments.intersect(fragments))

    def followed(self, fragments: Iterable[int]) -> BitMap:
        """Return the fragments that have the rows now."""
        found = BitMap(fragments)
        for old, new in self.moves:
            if old.intersect(found):
                found = (found - old) | new
        return found


def touched_between(dataset: Dataset, version: int) -> Touched:
    """Look at what was committed after a version, up to that of the dataset.

    Parameters
    ----------
    dataset
        At the newer version.
    version
        The older one.

    Raises
    ------
    CommitConflictError
        A version between was removed, so nobody can tell.
    """
    lineage = Lineage(dataset.snapshot.scheduler)
    lineage.refresh()
    history = reuse_of(dataset.snapshot.scheduler, dataset.snapshot.manifest)
    fragments, lost, moves, is_everything = BitMap(), BitMap(), [], False
    for each in lineage.commits_after(version):
        if each.version > dataset.version:
            break
        operation = each.transaction.operation
        touched = _touched(operation)
        is_everything = is_everything or touched is None
        fragments |= BitMap() if touched is None else touched
        if isinstance(operation, Rewrite) and touched is not None:
            is_deferred = each.version - 1 in history.dataset_versions
            lost |= BitMap() if is_deferred else touched
            moves += [
                (
                    BitMap(f.id for f in group.old_fragments),
                    BitMap(f.id for f in group.new_fragments),
                )
                for group in operation.groups
            ]
    return Touched(fragments, lost, tuple(moves), is_everything)


def _touched(operation: Operation) -> BitMap | None:
    """Return the fragments that an operation moved or gave other values; None = any.

    Deleted rows, and such as an update wrote elsewhere, are left out of searches anyway.
    """
    if isinstance(operation, Rewrite):
        return BitMap(each.id for group in operation.groups for each in group.old_fragments)
    if isinstance(operation, DataReplacement):
        return BitMap(each.fragment_id for each in operation.replacements)
    if isinstance(operation, Update):
        if operation.mode is UpdateMode.REWRITE_ROWS:
            return BitMap()
        return BitMap(each.id for each in operation.updated_fragments)
    return BitMap() if isinstance(operation, _LEAVES_ALL) else None
