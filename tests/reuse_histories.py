"""Random reuse histories, with a dict that follows every row through them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.ids import FragmentId
from lance_core.table.reuse_history import (
    FragmentDigest,
    ReuseGroup,
    ReuseHistory,
    ReuseVersion,
)
from lance_core.table.treemap import encode_treemap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TOMBSTONE = 2**64 - 1


@dataclass
class Compactions:
    """Fragments of rows that remember every address they ever had.

    ``rows[fragment][offset]`` is the set of all addresses of the row there; deleted rows are None.
    """

    rows: dict[int, list[set[int] | None]] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    next_id: int = 0
    versions: list[ReuseVersion] = field(default_factory=list)
    version: int = 1

    def append(self, num_rows: int) -> None:
        self.version += 1
        self.rows[self.next_id] = [{self.next_id << 32 | row} for row in range(num_rows)]
        self.next_id += 1

    def delete(self, fragment: int, offset: int) -> None:
        """Mark a row as deleted; it keeps its address until it is compacted."""
        row = self.rows[fragment][offset]
        if row is not None:
            self.lost |= row
            self.rows[fragment][offset] = None

    def compact(self, groups: Sequence[tuple[Sequence[int], int]]) -> None:
        """Compact groups of fragments, each into fragments of so many rows."""
        made = tuple(self._compact(old, size) for old, size in groups if old)
        self.versions.append(ReuseVersion(self.version, made))
        self.version += 1

    def _compact(self, old: Sequence[int], size: int) -> ReuseGroup:
        survivors = {f: BitMap(o for o, r in enumerate(self.rows[f]) if r) for f in old}
        old_digests = tuple(
            FragmentDigest(FragmentId(f), len(self.rows[f]), len(self.rows[f]) - len(survivors[f]))
            for f in old
        )
        rows = [row for f in old for row in self.rows.pop(f) if row]
        new_digests = []
        for start in range(0, len(rows), size):
            part: list[set[int] | None] = list(rows[start : start + size])
            for offset, row in enumerate(rows[start : start + size]):
                row.add(self.next_id << 32 | offset)
            new_digests.append(FragmentDigest(FragmentId(self.next_id), len(part), 0))
            self.rows[self.next_id] = part
            self.next_id += 1
        return ReuseGroup(encode_treemap(survivors), old_digests, tuple(new_digests))

    @property
    def history(self) -> ReuseHistory:
        return ReuseHistory(tuple(self.versions))

    def check(self, addresses: NDArray[np.uint64], mapped: NDArray[np.uint64]) -> None:
        """Check what addresses were led to; dead rows must not be led to live ones."""
        now = {
            address: fragment << 32 | offset
            for fragment, rows in self.rows.items()
            for offset, row in enumerate(rows)
            if row is not None
            for address in row
        }
        live = set(now.values())
        for address, found in zip(addresses.tolist(), mapped.tolist(), strict=True):
            if address in now:
                assert found == now[address]
            else:
                assert found == TOMBSTONE or found not in live

    def all_addresses(self) -> NDArray[np.uint64]:
        """Return every address that a row ever had, dead rows included."""
        known = {a for rows in self.rows.values() for row in rows if row for a in row}
        return np.array(sorted(known | self.lost), np.uint64)


def random_compactions(seed: int, *, num_steps: int = 30, max_rows: int = 60) -> Compactions:
    """Make a random history of appends, deletions and compactions."""
    rng = np.random.default_rng(seed)
    table = Compactions()
    for _ in range(num_steps):
        random_step(table, rng, max_rows)
    return table


def random_step(table: Compactions, rng: np.random.Generator, max_rows: int = 60) -> None:
    """Append, delete or compact."""
    step = rng.random()
    fragments = list(table.rows)
    if step < 0.3 or not fragments:
        table.append(int(rng.integers(0, max_rows)))
    elif step < 0.7:
        fragment = int(rng.choice(fragments))
        num_rows = len(table.rows[fragment])
        share = rng.choice([0.02, 0.3, 1.0])
        for offset in np.flatnonzero(rng.random(num_rows) < share).tolist():
            table.delete(fragment, offset)
    else:
        chosen = rng.permutation(fragments)[: rng.integers(1, len(fragments) + 1)].tolist()
        cut = int(rng.integers(0, len(chosen) + 1))
        sizes = rng.integers(1, 2 * max_rows, 2).tolist()
        table.compact([(chosen[:cut], sizes[0]), (chosen[cut:], sizes[1])])
