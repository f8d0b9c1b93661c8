"""Reads as steps: lockstep of many, one list of ranges per step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.encodings.steps import ReadSteps, drive, together

if TYPE_CHECKING:
    from collections.abc import Sequence


def chain(start: int, steps: int) -> ReadSteps[list[bytes]]:
    """Ask for one byte per step, each after the one before."""
    seen = []
    for step in range(steps):
        (view,) = yield [(start + step, start + step + 1)]
        seen.append(bytes(view))
    return seen


DATA = bytes(range(100))


def test_reads_advance_together_and_keep_their_order() -> None:
    asked: list[list[tuple[int, int]]] = []

    def fetch(ranges: list[tuple[int, int]]) -> Sequence[memoryview]:
        asked.append(ranges)
        return [memoryview(DATA)[start:end] for start, end in ranges]

    results = drive(together([chain(10, 2), chain(20, 0), chain(30, 1)]), fetch)
    assert results == [[b"\x0a", b"\x0b"], [], [b"\x1e"]]
    assert asked == [[(10, 11), (30, 31)], [(11, 12)]]


def test_a_read_that_needs_nothing_asks_for_nothing() -> None:
    def fetch(ranges: list[tuple[int, int]]) -> Sequence[memoryview]:
        raise AssertionError(ranges)

    assert drive(chain(0, 0), fetch) == []
