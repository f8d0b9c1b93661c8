"""Windows of a scan: bounded, aligned, and sized by what earlier ones took."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.file.windows import (
    WINDOW_BYTES,
    WindowSizes,
    cut_batches,
    least_row_bytes,
)

ROWS = 10_000_000


def decoded(row_bytes: int, num_rows: int) -> list[pa.Array]:
    return [pa.nulls(num_rows, pa.binary(row_bytes))]


def windows_of(row_bytes: int, stored_row_bytes: float, batch_rows: int) -> list[tuple[int, int]]:
    """Return the first windows of rows that decode to ``row_bytes``."""
    sizes = WindowSizes(1.0, batch_rows, 1)
    found = []

    def stored_bytes(start: int, stop: int) -> float:
        return (stop - start) * stored_row_bytes

    for start, stop in sizes.windows(0, ROWS, stored_bytes):
        sizes.measured(start, stop, stored_bytes, lambda a, b: decoded(row_bytes, b - a))()
        found.append((start, stop))
        if len(found) == 5:
            break
    return found


@pytest.mark.parametrize(("row_bytes", "stored_row_bytes"), [(8, 8), (100, 1), (4000, 4000)])
def test_windows_follow_one_another_and_have_some_megabytes(
    row_bytes: int, stored_row_bytes: float
) -> None:
    windows = windows_of(row_bytes, stored_row_bytes, 8192)
    assert [start for start, _ in windows[1:]] == [stop for _, stop in windows[:-1]]
    for start, stop in windows[2:]:
        assert WINDOW_BYTES / 4 < (stop - start) * row_bytes <= 1.1 * WINDOW_BYTES


def test_windows_are_whole_batches_where_they_hold_one() -> None:
    assert {(stop - start) % 1000 for start, stop in windows_of(8, 8, 1000)} == {0}
    assert {(stop - start) % 4096 for start, stop in windows_of(8, 8, 1024)} == {0}


def test_a_row_larger_than_a_window_is_a_window() -> None:
    assert windows_of(10, 100 << 20, 8192)[:2] == [(0, 1), (1, 2)]


def test_the_last_window_ends_with_the_rows() -> None:
    sizes = WindowSizes(8.0, 8192, 1)
    assert list(sizes.windows(5, 17, lambda start, stop: 8.0 * (stop - start))) == [(5, 17)]
    assert list(sizes.windows(5, 5, lambda start, stop: 0.0)) == []


@pytest.mark.parametrize(
    ("kind", "num_bytes"),
    [
        (pa.int64(), 8),
        (pa.list_(pa.float32(), 128), 512),
        (pa.struct([("a", pa.int8()), ("b", pa.binary(7))]), 8),
        (pa.string(), 4),
        (pa.json_(), 4),
    ],
    ids=str,
)
def test_types_say_what_a_row_takes_at_least(kind: pa.DataType, num_bytes: float) -> None:
    assert least_row_bytes(kind) == num_bytes


def test_batches_have_the_rows_of_the_window_in_order() -> None:
    window = pa.record_batch([pa.array(["x" * (i % 50) for i in range(1000)])], names=["t"])
    batches = list(cut_batches(window, 300, 2000))
    assert pa.Table.from_batches(batches).combine_chunks().to_batches() == [window]
    assert max(batch.nbytes for batch in batches) <= 2000
    assert [batch.num_rows for batch in cut_batches(window, 300, 10**6)] == [300, 300, 300, 100]
