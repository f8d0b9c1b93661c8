"""How rows gather to pages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_core.file.pending_rows import PendingRows
from lance_core.file.row_bytes import bytes_before, row_bytes

PAGE_BYTES = 8000


def pieces_of(*arrays: pa.Array) -> list[pa.Array]:
    pending = PendingRows(PAGE_BYTES)
    return [piece for array in arrays for piece in pending.add(array)] + list(pending.rest())


def numbers(count: int) -> pa.Array:
    return pa.array(np.arange(count))


def test_small_batches_gather_to_a_page() -> None:
    pieces = pieces_of(*[numbers(100)] * 25)
    assert [len(piece) for piece in pieces] == [1000, 1000, 500]


def test_a_large_batch_is_cut_into_pages() -> None:
    pieces = pieces_of(numbers(3500))
    assert [len(piece) for piece in pieces] == [1000, 1000, 1000, 500]
    assert pa.concat_arrays(pieces).equals(numbers(3500))


def test_no_page_is_larger_than_asked_for_however_sizes_vary() -> None:
    texts = pa.array(["x" * (1 + 7000 * (i % 97 == 0)) for i in range(2000)])
    pieces = pieces_of(texts)
    assert all(row_bytes(piece) <= PAGE_BYTES for piece in pieces)
    assert pa.concat_arrays(pieces).equals(texts)


def test_a_row_larger_than_a_page_is_a_page() -> None:
    pieces = pieces_of(pa.array(["a", "b" * 10_000, "c" * 20_000, "d"]))
    assert [len(piece) for piece in pieces] == [1, 1, 1, 1]


def test_rows_without_bytes_make_one_page() -> None:
    assert [len(piece) for piece in pieces_of(pa.nulls(10**6), pa.nulls(5))] == [10**6 + 5]


def test_no_rows_make_no_page() -> None:
    assert pieces_of() == []
    assert pieces_of(numbers(0)) == []


def test_what_waits_does_not_keep_the_batch_it_is_cut_from() -> None:
    batch = numbers(1_000_100)
    before = pa.total_allocated_bytes()
    pending = PendingRows(PAGE_BYTES)
    waiting = batch.slice(10, 5)
    assert list(pending.add(waiting)) == []
    del batch, waiting
    assert pa.total_allocated_bytes() - before < 10_000
    assert [len(piece) for piece in pending.rest()] == [5]


def test_very_small_batches_are_joined_while_they_wait() -> None:
    pieces = pieces_of(*[numbers(1)] * 700)
    assert [len(piece) for piece in pieces] == [700]


def test_dictionaries_that_do_not_go_together_make_pages_of_their_own() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [
        pa.array([f"{part} {i}" for i in range(100)]).dictionary_encode().cast(kind)
        for part in range(3)
    ]
    pieces = pieces_of(*batches)
    assert [len(piece) for piece in pieces] == [100, 100, 100]
    assert [piece.to_pylist() for piece in pieces] == [batch.to_pylist() for batch in batches]


def test_dictionaries_that_go_together_share_a_page() -> None:
    batches = [pa.array([f"{part}", "x"]).dictionary_encode() for part in range(3)]
    (piece,) = pieces_of(*batches)
    assert piece.to_pylist() == ["0", "x", "1", "x", "2", "x"]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, 2, 3]).slice(1), 16),
        (pa.array(["a" * 100] * 8).dictionary_encode(), 32),
        (pa.array([["ab"], ["cd"]]).slice(1), 4 + 4 + 2),
        (pa.array([{"x": 1, "y": 2.0}] * 8), 128),
        (pa.array([{"x": "ab"}, None, {"x": "c"}]).slice(1), 4 + 4 + 1),
        (pa.array([[1]] * 2, pa.large_list(pa.int8())), 18),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), 4 + 5 + 1),
        (pa.array([b"0123456789abcdef"] * 2, pa.uuid()), 32),
    ],
    ids=["numbers", "dictionary", "list", "struct", "texts", "large list", "map", "extension"],
)
def test_rows_are_weighed_without_what_all_of_them_share(array: pa.Array, expected: int) -> None:
    assert row_bytes(array) == expected


@pytest.mark.parametrize(
    "array",
    [
        numbers(7).slice(2),
        pa.array(["a", None, "ccc", "", "dd"]).slice(1),
        pa.array([[1, 2], [], None, [3]]).slice(1),
        pa.array([["a", "bcd"], [], ["e"]], pa.large_list(pa.large_string())),
        pa.array([{"x": "ab", "y": 1}, None, {"x": "c", "y": 2}]),
        pa.array([[["a"], ["bc"]], [["def"], []]], pa.list_(pa.list_(pa.string()), 2)).slice(1),
        pa.array([[("k", 1)], [], [("long", 2)]], pa.map_(pa.string(), pa.int8())),
        pa.nulls(3),
    ],
    ids=lambda array: str(array.type),
)
def test_the_bytes_of_any_rows_are_a_difference(array: pa.Array) -> None:
    before = bytes_before([array, array], len(array))
    for start in range(len(array) + 1):
        for stop in range(start, len(array) + 1):
            rows = array.slice(start, stop - start)
            assert before[stop] - before[start] == 2 * row_bytes(rows)


def test_no_rows_of_a_large_dictionary_make_no_page() -> None:
    items = pa.array(["x" * PAGE_BYTES])
    pairs = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), items)
    lists = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), pairs)
    assert pieces_of(lists.slice(0, 0)) == []
