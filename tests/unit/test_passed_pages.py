"""Scans forget the pages that they have passed; what they read stays right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings import passing
from lance_core.encodings.chunk_index import CHUNK_BYTES
from lance_core.encodings.passing import MIN_PAGES, PassedPages
from lance_core.encodings.version import FileVersion
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.ids import ColumnIndex
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = 12_000
STEP = 500
NUMBERS = np.random.default_rng(0).integers(0, 1 << 30, ROWS)


def words(num_distinct: int) -> pa.Array:
    texts = [f"the word of number {number}" for number in range(num_distinct)]
    mask = NUMBERS % 7 == 0
    return pa.array(texts).take(pa.array(NUMBERS % num_distinct, mask=mask))


def lists(items: pa.Array) -> pa.Array:
    offsets = np.minimum(np.arange(ROWS + 1) * 2, len(items)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items)


COLUMNS: dict[str, pa.Array] = {
    "packed numbers": pa.array(NUMBERS),
    "constants in between": pa.array(np.where(np.arange(ROWS) // 3000 % 2 == 0, NUMBERS, 7)),
    "nullable numbers": pa.array(NUMBERS, mask=NUMBERS % 5 == 0),
    "sentences": pa.array([f"the square of {n} is {n * n}" for n in NUMBERS.tolist()]),
    "labels": words(50),
    "dictionary": words(50).dictionary_encode(),
    "long texts": pa.array([f"{n}" * 40 for n in NUMBERS.tolist()]),
    "lists": lists(pa.array(NUMBERS)),
    "lists of labels": lists(words(50)),
    "lists of dictionaries": lists(words(50).dictionary_encode()),
    "nulls and lists": lists(pa.nulls(ROWS, pa.int64())),
}
VERSIONS = (FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2)


def opened(column: pa.Array, version: FileVersion) -> LanceFileReader:
    store = MemoryStore()
    schema = pa.schema([pa.field("x", column.type)])
    with LanceFileWriter(store, "a.lance", schema, version=version, max_page_bytes=4_000) as writer:
        for start in range(0, ROWS, STEP):
            writer.write_batch(pa.record_batch([column.slice(start, STEP)], schema=schema))
    return LanceFileReader.open(RangeScheduler(store), "a.lance")


def state_bytes(reader: LanceFileReader) -> int:
    indices = range(reader.num_columns)
    return sum(reader._columns[ColumnIndex(index)].state_bytes for index in indices)


def read_all(reader: LanceFileReader, column: pa.Array, starts: Sequence[int]) -> None:
    for start in starts:
        (found,) = reader.read(["x"], [(start, start + STEP)])
        assert decoded(found).equals(decoded(column.slice(start, STEP)))


def decoded(array: pa.Array) -> pa.Array:
    """Dictionaries may have other items, or the same in another order."""
    if pa.types.is_list(array.type):
        flat = array.flatten()
        return pa.array(array.to_pylist(), pa.list_(decoded(flat).type))
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", COLUMNS)
def test_two_threads_that_make_each_other_forget_pages_read_right_rows(
    name: str, version: FileVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "MAX_PASSED_BYTES", 0)
    monkeypatch.setattr(passing, "MIN_PAGES", 0)
    column = COLUMNS[name]
    reader = opened(column, version)
    starts = range(0, ROWS, STEP)
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(read_all, reader, column, order) for order in (starts, starts[::-1]) * 2
        ]
        for job in jobs:
            job.result()
    rows = np.arange(0, ROWS, 97)
    (taken,) = reader.take(["x"], rows)
    assert decoded(taken).equals(decoded(column.take(pa.array(rows))))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", COLUMNS)
def test_passed_pages_are_held_only_up_to_a_number_of_bytes(
    name: str, version: FileVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = COLUMNS[name]
    unbounded, bounded = opened(column, version), opened(column, version)
    num_pages = max(
        len(unbounded._columns[ColumnIndex(index)].pages) for index in range(unbounded.num_columns)
    )
    assert num_pages >= 12
    placeholders = 2 * CHUNK_BYTES * num_pages
    read_all(unbounded, column, range(0, ROWS, STEP))
    monkeypatch.setattr(passing, "MAX_PASSED_BYTES", 0)
    monkeypatch.setattr(passing, "MIN_PAGES", 1)
    read_all(bounded, column, range(0, ROWS, STEP))
    assert state_bytes(bounded) <= state_bytes(unbounded) // 4 + placeholders


def test_scans_hold_as_much_of_a_long_file_as_of_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passing, "MAX_PASSED_BYTES", 0)
    held = []
    for repeats in (1, 4):
        column = pa.concat_arrays([COLUMNS["lists"]] * repeats)
        store = MemoryStore()
        schema = pa.schema([pa.field("x", column.type)])
        with LanceFileWriter(store, "a.lance", schema, max_page_bytes=4_000) as writer:
            writer.write_batch(pa.record_batch([column], schema=schema))
        reader = LanceFileReader.open(RangeScheduler(store), "a.lance")
        for start in range(0, ROWS * repeats, STEP):
            reader.read(["x"], [(start, start + STEP)])
        held.append(state_bytes(reader))
    assert 0 < held[1] <= 1.5 * held[0]


@pytest.mark.parametrize("name", ["packed numbers", "sentences", "labels", "lists"])
def test_pages_that_takes_loaded_stay_when_scans_pass(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "MAX_PASSED_BYTES", 0)
    reader = opened(COLUMNS[name], FileVersion.V2_2)
    rows = np.arange(0, ROWS, 100)
    reader.take(["x"], rows)
    ranges = [(row, row + 1) for row in rows.tolist()]
    asked = reader.byte_ranges(["x"], ranges)
    read_all(reader, COLUMNS[name], range(0, ROWS, STEP))
    assert reader.byte_ranges(["x"], ranges) == asked


class Holder:
    def __init__(self) -> None:
        self.forgotten: list[int] = []

    def forget(self, numbers: Sequence[int]) -> None:
        self.forgotten += numbers


LONG: list[tuple[int, int]] = [(0, 1000)]


def test_the_first_loaded_is_forgotten_first_whoever_holds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passing, "MAX_PASSED_BYTES", 100)
    monkeypatch.setattr(passing, "MIN_PAGES", 1)
    pages, one, other = PassedPages(8), Holder(), Holder()
    pages.note(one, {7: 30, 3: 30}, LONG)
    pages.note(other, {3: 30}, LONG)
    pages.note(one, {8: 10}, LONG)
    assert (one.forgotten, other.forgotten) == ([], [])
    pages.note(other, {1: 30}, LONG)
    assert (one.forgotten, other.forgotten) == ([7], [])
    pages.note(other, {2: 61}, LONG)
    assert (one.forgotten, other.forgotten) == ([7, 3, 8], [3])


def test_the_newest_pages_stay_however_large_they_are() -> None:
    pages, holder = PassedPages(8), Holder()
    for number in range(2 * MIN_PAGES):
        pages.note(holder, {number: 1 << 40}, LONG)
    assert holder.forgotten == list(range(MIN_PAGES))


def test_a_page_that_is_loaded_anew_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "MAX_PASSED_BYTES", 100)
    pages, holder = PassedPages(8), Holder()
    for _ in range(10):
        pages.note(holder, {0: 90}, LONG)
    for number in range(1, 2 * MIN_PAGES):
        pages.note(holder, {number: 1}, LONG)
    assert holder.forgotten == []


@pytest.mark.parametrize(
    ("row_bytes", "wanted", "is_passing"),
    [
        (8, [(row, row + 1) for row in range(0, 10_000, 10)], False),
        (8, [(row, row + 9) for row in range(0, 10_000, 10)], False),
        (8, [(row, row + 99) for row in range(0, 10_000, 100)], True),
        (0.01, LONG, True),
        (100_000, [(0, 2)], True),
        (8, [], False),
    ],
)
def test_long_pieces_pass_by_and_single_rows_come_back(
    row_bytes: float,
    wanted: list[tuple[int, int]],
    is_passing: bool,
) -> None:
    pages, holder = PassedPages(row_bytes), Holder()
    for number in range(MIN_PAGES + 1):
        pages.note(holder, {number: 1 << 40}, wanted)
    assert holder.forgotten == ([0] if is_passing else [])
