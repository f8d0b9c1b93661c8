"""Chunk tables of many pages, loaded page by page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.chunk_index import (
    CHUNK_BYTES,
    NOT_LOADED,
    ChunkIndex,
    ChunkTables,
    PageChunks,
)
from lance_core.encodings.passing import PassedPages
from lance_core.encodings.steps import ReadSteps, drive
from lance_core.encodings.values import FixedWidth

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST_ROWS = np.array([0, 10, 30, 60], np.int64)


def array(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def chunks_of_pages(numbers: NDArray[np.int64]) -> PageChunks:
    """Two chunks per page: one of four rows, and the rest."""
    first_rows = np.stack([FIRST_ROWS[numbers], FIRST_ROWS[numbers] + 4], axis=1).ravel()
    pages = np.repeat(numbers, 2)
    kinds = np.zeros(len(pages), np.uint8)
    return PageChunks(first_rows, first_rows * 100, first_rows + 1, kinds, pages)


class Described:
    """Describes pages and notes which."""

    def __init__(self) -> None:
        self.pages: list[list[int]] = []

    def __call__(self, numbers: NDArray[np.int64]) -> ReadSteps[PageChunks]:
        self.pages.append(numbers.tolist())
        yield []
        return chunks_of_pages(numbers)


def load(index: ChunkIndex, *ranges: tuple[int, int]) -> ChunkTables:
    starts, stops = array(*(start for start, _ in ranges)), array(*(stop for _, stop in ranges))
    return drive(index.loaded(starts, stops, ranges), lambda _: ())


def test_only_pages_with_wanted_rows_are_described_and_only_once() -> None:
    described = Described()
    index = ChunkIndex(FIRST_ROWS, described, PassedPages(row_bytes=8))
    load(index, (45, 46), (50, 60))
    load(index, (5, 10), (40, 41))
    load(index, (0, 1))
    assert described.pages == [[2], [0]]


def test_a_range_over_several_pages_loads_all_of_them() -> None:
    described = Described()
    table = load(ChunkIndex(FIRST_ROWS, described, PassedPages(row_bytes=8)), (9, 31))
    assert described.pages == [[0, 1, 2]]
    assert table.is_complete


def test_loaded_pages_take_the_place_of_what_stood_for_them() -> None:
    index = ChunkIndex(FIRST_ROWS, Described(), PassedPages(row_bytes=8))
    load(index, (30, 31))
    table = load(index, (0, 1))
    assert table.first_rows.tolist() == [0, 4, 10, 30, 34, 60]
    assert table.pages.tolist() == [0, 0, 1, 2, 2]
    assert table.kinds.tolist() == [0, 0, NOT_LOADED, 0, 0]
    assert table.offsets.tolist() == [0, 400, 0, 3000, 3400]
    assert table.sizes.tolist() == [1, 5, 0, 31, 35]
    assert not table.is_complete


def test_a_page_that_ends_with_a_chunk_of_no_rows_stays_before_the_next() -> None:
    def describe(numbers: NDArray[np.int64]) -> ReadSteps[PageChunks]:
        yield []
        return PageChunks(
            array(0, 10), array(7, 8), array(1, 1), np.zeros(2, np.uint8), np.repeat(numbers, 2)
        )

    table = load(ChunkIndex(FIRST_ROWS, describe, PassedPages(row_bytes=8)), (0, 5))
    assert table.pages.tolist() == [0, 0, 1, 2]
    assert table.pages[table.chunks_of(array(9, 10))].tolist() == [0, 1]


def test_reads_that_load_at_the_same_time_keep_each_others_pages() -> None:
    index = ChunkIndex(FIRST_ROWS, Described(), PassedPages(row_bytes=8))
    one = index.loaded(array(0, 10), array(1, 11), [])
    other = index.loaded(array(10, 30), array(11, 31), [])
    next(one), next(other)
    drive(one, lambda _: ())
    table = drive(other, lambda _: ())
    assert table.is_complete
    assert table.pages.tolist() == [0, 0, 1, 1, 2, 2]
    assert index.tables is table


def test_no_ranges_load_nothing() -> None:
    described = Described()
    load(ChunkIndex(FIRST_ROWS, described, PassedPages(row_bytes=8)))
    assert described.pages == []


def test_a_page_that_is_forgotten_is_described_anew() -> None:
    described = Described()
    index = ChunkIndex(FIRST_ROWS, described, PassedPages(row_bytes=8))
    load(index, (0, 60))
    index.forget([2, 0])
    assert index.tables.first_rows.tolist() == [0, 10, 14, 30, 60]
    assert index.tables.kinds.tolist() == [NOT_LOADED, 0, 0, NOT_LOADED]
    table = load(index, (0, 60))
    assert described.pages == [[0, 1, 2], [0, 2]]
    assert table.first_rows.tolist() == [0, 4, 10, 14, 30, 34, 60]


def test_a_read_keeps_the_pages_that_are_forgotten_while_it_loads_others() -> None:
    index = ChunkIndex(FIRST_ROWS, Described(), PassedPages(row_bytes=8))
    load(index, (0, 10))
    read = index.loaded(array(0), array(60), [(0, 60)])
    next(read)
    index.forget([0])
    table = drive(read, lambda _: ())
    assert table.is_complete
    assert table.first_rows.tolist() == [0, 4, 10, 14, 30, 34, 60]
    assert index.tables.kinds.tolist() == [NOT_LOADED, 0, 0, 0, 0]


def test_dictionaries_come_and_go_with_their_pages() -> None:
    def describe(numbers: NDArray[np.int64]) -> ReadSteps[PageChunks]:
        yield []
        items = {n: FixedWidth(np.zeros(n, np.uint8), 8, n) for n in numbers.tolist()}
        return replace(chunks_of_pages(numbers), dictionaries=items)

    index = ChunkIndex(FIRST_ROWS, describe, PassedPages(row_bytes=8))
    load(index, (10, 60))
    assert index.nbytes == 5 * CHUNK_BYTES + 1 + 2
    index.forget([1])
    assert list(index.tables.dictionaries) == [2]
    assert list(load(index, (0, 60)).dictionaries) == [2, 0, 1]
