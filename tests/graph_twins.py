"""Small HNSW graphs for tests, and walks over them written a second, simpler way.

The walks follow the vector index page, section 5, with sorted lists instead of heaps, so they agree
with kernels only where no two distances are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class PlainGraph:
    """Neighbours of each node per level, level 0 first, and where searches begin."""

    levels: Sequence[dict[int, list[int]]]
    entry_point: int

    def rows(self) -> tuple[pa.Array, pa.Array]:
        """Return the columns ``__vector_id`` and ``__neighbors`` as files hold them."""
        rows = [row for level in self.levels for row in sorted(level.items())]
        ids = pa.array([node for node, _ in rows], pa.uint32())
        return ids, pa.array([links for _, links in rows], pa.list_(pa.uint32()))

    def level_offsets(self) -> tuple[int, ...]:
        return (0, *np.cumsum([len(level) for level in self.levels]).tolist())


def random_graph(seed: int, num_nodes: int, degree: int = 6) -> PlainGraph:
    """Link nodes at random: a ring through all on level 0, and up to two levels above."""
    generator = np.random.default_rng(seed)

    def linked(nodes: list[int]) -> dict[int, list[int]]:
        around = dict(zip(nodes, nodes[1:] + nodes[:1], strict=True))
        chosen = {a: generator.choice(nodes, min(degree, len(nodes))).tolist() for a in nodes}
        return {a: list(dict.fromkeys([*chosen[a], around[a]])) for a in nodes}

    levels = [linked(generator.permutation(num_nodes).tolist())]
    for share in (4, 16):
        higher = generator.permutation(sorted(levels[-1]))[: num_nodes // share].tolist()
        if higher:
            levels.append(linked(higher))
    return PlainGraph(levels, min(levels[-1]))


def descend(graph: PlainGraph, distances: NDArray[np.float32]) -> int:
    node = graph.entry_point
    for level in reversed(graph.levels[1:]):
        while True:
            nearest = min(level.get(node, []), key=lambda each: distances[each], default=node)
            if distances[nearest] >= distances[node]:
                break
            node = nearest
    return node


class Nearest:
    """The ``ef`` nearest nodes kept so far."""

    def __init__(self, ef: int) -> None:
        self.ef = ef
        self.kept: list[tuple[float, int]] = []

    @property
    def is_full(self) -> bool:
        return len(self.kept) == self.ef

    def admits(self, distance: float) -> bool:
        return not self.is_full or distance <= self.kept[-1][0]

    def add(self, distance: float, node: int) -> None:
        self.kept = sorted([*self.kept, (distance, node)])[: self.ef]


def beam(
    graph: PlainGraph,
    distances: NDArray[np.float32],
    wanted: NDArray[np.bool_],
    ef: int,
    entry: int,
) -> list[int]:
    """Return the nodes that a beam over level 0 keeps; ``wanted`` are those that it may."""
    nearest = Nearest(ef)
    waiting, seen = [(distances[entry], entry)], {entry}
    if wanted[entry]:
        nearest.add(*waiting[0])
    while waiting:
        distance, node = waiting.pop(0)
        if not nearest.admits(distance):
            break
        for other in graph.levels[0][node]:
            if other in seen:
                continue
            seen.add(other)
            if nearest.admits(distances[other]):
                if wanted[other]:
                    nearest.add(distances[other], other)
                waiting.append((distances[other], other))
        waiting.sort()
    return [node for _, node in nearest.kept]


class TwoHopWalk:
    """A walk through passing nodes, as ``approx_mode="fast"`` makes it."""

    def __init__(
        self,
        graph: PlainGraph,
        distances: NDArray[np.float32],
        passing: NDArray[np.bool_],
        ef: int,
        entry: int,
    ) -> None:
        self.links = graph.levels[0]
        self.distances = distances
        self.passing = passing
        self.nearest = Nearest(ef)
        self.seen = {entry}
        self.looked_through: set[int] = set()
        self.queue: list[int] = []
        self.budget = 4 * ef
        self.waiting = [(distances[entry], entry)]
        if passing[entry]:
            self.nearest.add(*self.waiting[0])

    def take(self, nodes: list[int], *, always: bool) -> None:
        for node in nodes:
            if always or self.nearest.admits(self.distances[node]):
                self.nearest.add(self.distances[node], node)
                self.waiting.append((self.distances[node], node))
        self.waiting.sort()

    def new(self, nodes: list[int]) -> list[int]:
        new = [x for x in nodes if self.passing[x] and x not in self.seen]
        self.seen.update(new)
        return new

    def behind(self, node: int) -> list[int]:
        failing = [x for x in self.links[node] if not self.passing[x]]
        self.queue.extend(x for x in failing if x not in self.looked_through)
        return self.new(self.links[node])

    def seeds(self) -> list[int]:
        rows: list[int] = np.flatnonzero(self.passing).tolist()
        return self.new(rows[:: max(len(rows) // 16, 1)][:16])

    def behind_waypoints(self) -> list[int]:
        while self.queue and self.budget > 0:
            waypoint = self.queue.pop(0)
            if waypoint not in self.looked_through:
                self.looked_through.add(waypoint)
                self.budget -= 1
                new = self.behind(waypoint)
                if new:
                    return new
        return []

    def two_hops(self, node: int) -> list[int]:
        batch = []
        for x in self.links[node]:
            if self.passing[x]:
                batch.extend(self.new([x]))
            elif x not in self.looked_through:
                self.looked_through.add(x)
                batch.extend(self.behind(x))
        return batch

    def run(self) -> list[int]:
        """Return the nodes that are kept."""
        self.take(self.seeds(), always=True)
        enough = min(self.nearest.ef, int(self.passing.sum()))
        while True:
            if not self.waiting and len(self.nearest.kept) < enough:
                self.take(self.behind_waypoints(), always=True)
            if not self.waiting:
                break
            distance, node = self.waiting.pop(0)
            if not self.nearest.admits(distance):
                break
            self.take(self.two_hops(node), always=False)
        return [node for _, node in self.nearest.kept]
