"""Which indices answer for fewer rows than they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.operations.index_state import index_states

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.table.snapshot import Snapshot


def lost_coverage(before: Snapshot, after: Snapshot) -> Mapping[str, int]:
    """Return how many rows more each index leaves to scans; indices without such are left out.

    Parameters
    ----------
    before, after
        Two versions, between which no rows were added.
    """
    old, new = (_uncovered_rows(each) for each in (before, after))
    more = {name: new[name] - old[name] for name in old.keys() & new.keys()}
    return {name: more[name] for name in sorted(more) if more[name] > 0}


def _uncovered_rows(snapshot: Snapshot) -> dict[str, int]:
    """Return how many rows each index does not cover, deleted ones included."""
    num_rows = {int(each.id): each.physical_rows for each in snapshot.fragments}
    return {
        name: sum(num_rows[fragment_id] for fragment_id in state.uncovered)
        for name, state in index_states(snapshot).items()
    }
