"""Queries turned away while memory is short."""

from __future__ import annotations

import pytest

from service.api.errors import BusyError
from service.api.memory_guard import MemoryGuard, anonymous_bytes


class Memory:
    held: int | None = 0
    looked = 0

    def __call__(self) -> int | None:
        self.looked += 1
        return self.held


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_queries_begin_again_when_there_is_room() -> None:
    memory, clock = Memory(), Clock()
    guard = MemoryGuard(100, measure=memory, now=clock)
    guard.require_room()
    memory.held = 101
    guard.require_room()  # the last look is still good
    clock.now_s = 0.25
    for _ in range(3):
        with pytest.raises(BusyError, match=r"101 bytes .* limit is 100 .*max_resident_bytes"):
            guard.require_room()
    assert memory.looked == 3  # once at first, then before and after giving back
    memory.held = 100
    clock.now_s = 0.5
    guard.require_room()


def test_nobody_looks_where_there_is_no_limit_and_none_is_found_where_nothing_is_told() -> None:
    memory = Memory()
    MemoryGuard(None, measure=memory).require_room()
    assert memory.looked == 0
    memory.held = None
    MemoryGuard(1, measure=memory).require_room()


def test_the_memory_of_this_process_is_told() -> None:
    before = anonymous_bytes()
    held = bytearray(64 << 20)
    held[:: 4 << 10] = b"x" * len(held[:: 4 << 10])
    after = anonymous_bytes()
    assert before is not None
    assert after is not None
    assert after - before >= 60 << 20
    del held
