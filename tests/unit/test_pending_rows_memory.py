"""What rows that wait for their page keep alive."""

from __future__ import annotations

import pyarrow as pa

from lance_core.file.pending_rows import PendingRows

ROWS = 1000
VALUE_BYTES = 8


def _numbers() -> pa.Array:
    return pa.array(range(ROWS), pa.int64())


def test_parts_are_dropped_before_the_piece_made_of_them_is_taken() -> None:
    pool = pa.system_memory_pool()
    before = pool.bytes_allocated()
    pending = PendingRows(2 * ROWS * VALUE_BYTES)
    assert list(pending.add(pa.concat_arrays([_numbers()], memory_pool=pool))) == []
    pieces = pending.add(pa.concat_arrays([_numbers()], memory_pool=pool))
    piece = next(pieces)
    assert len(piece) == 2 * ROWS
    assert pool.bytes_allocated() - before < 3 * ROWS * VALUE_BYTES


def test_a_piece_can_go_once_the_next_one_is_asked_for() -> None:
    pool = pa.system_memory_pool()
    before = pool.bytes_allocated()
    pending = PendingRows(2 * ROWS * VALUE_BYTES)
    for _ in range(4):
        for piece in pending.add(_numbers()):
            assert len(piece) == 2 * ROWS
            del piece
    assert list(pending.rest()) == []
    assert pool.bytes_allocated() == before
