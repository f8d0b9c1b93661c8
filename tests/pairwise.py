"""Few combinations of many choices, in which every pair of choices occurs."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Combination = tuple[object, ...]


def pairwise(choices: Mapping[str, Sequence[object]]) -> list[Combination]:
    """Return combinations of one choice each, by greedy choice among all of them.

    Every two choices of different names stand together in at least one.
    """
    every = list(product(*choices.values()))
    places = list(combinations(range(len(choices)), 2))

    def pairs(one: Combination) -> set[tuple[int, int, object, object]]:
        return {(a, b, one[a], one[b]) for a, b in places}

    open_pairs = set().union(*map(pairs, every))
    found: list[Combination] = []
    while open_pairs:
        best = max(every, key=lambda one: len(pairs(one) & open_pairs))
        open_pairs -= pairs(best)
        found.append(best)
    return found
