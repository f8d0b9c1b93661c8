"""Chunk tables of many pages, loaded page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.chunk_index import NOT_LOADED, ChunkIndex, ChunkTables, PageChunks
from lance_core.encodings.steps import ReadSteps, drive

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
    return drive(index.loaded(starts, stops), lambda _: ())


def test_only_pages_with_wanted_rows_are_described_and_only_once() -> None:
    described = Described()
    index = ChunkIndex(FIRST_ROWS, described)
    load(index, (45, 46), (50, 60))
    load(index, (5, 10), (40, 41))
    load(index, (0, 1))
    assert described.pages == [[2], [0]]


def test_a_range_over_several_pages_loads_all_of_them() -> None:
    described = Described()
    table = load(ChunkIndex(FIRST_ROWS, described), (9, 31))
    assert described.pages == [[0, 1, 2]]
    assert table.is_complete


def test_loaded_pages_take_the_place_of_what_stood_for_them() -> None:
    index = ChunkIndex(FIRST_ROWS, Described())
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

    table = load(ChunkIndex(FIRST_ROWS, describe), (0, 5))
    assert table.pages.tolist() == [0, 0, 1, 2]
    assert table.pages[table.chunks_of(array(9, 10))].tolist() == [0, 1]


def test_reads_that_load_at_the_same_time_keep_each_others_pages() -> None:
    index = ChunkIndex(FIRST_ROWS, Described())
    one = index.loaded(array(0, 10), array(1, 11))
    other = index.loaded(array(10, 30), array(11, 31))
    next(one), next(other)
    drive(one, lambda _: ())
    table = drive(other, lambda _: ())
    assert table.is_complete
    assert table.pages.tolist() == [0, 0, 1, 1, 2, 2]
    assert index.tables is table


def test_no_ranges_load_nothing() -> None:
    described = Described()
    load(ChunkIndex(FIRST_ROWS, described))
    assert described.pages == []
