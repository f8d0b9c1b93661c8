"""Pages that are described when they are first wanted."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from lance_core.encodings.page import Loaded, Page, PageLayout
from lance_core.file.page_list import PageList
from lance_core.file.stored_bytes import StoredBytes

FIRST_ROWS = np.array([0, 3, 7], np.int64)
NUM_BYTES = np.array([30, 8], np.int64)


def page_at(position: int) -> Page:
    first, stop = FIRST_ROWS[position : position + 2].tolist()
    return Page(first, stop - first, (), cast("PageLayout", None), Loaded())


def test_a_page_is_described_when_it_is_first_wanted_and_then_kept() -> None:
    asked: list[int] = []

    def describe(position: int) -> Page:
        asked.append(position)
        return page_at(position)

    pages = PageList(FIRST_ROWS, NUM_BYTES, describe)
    assert asked == []
    assert pages[1] is pages[1]
    assert asked == [1]
    assert [page.first_row for page in pages] == [0, 3]
    assert asked == [1, 0]


def test_rows_are_known_without_describing_a_page() -> None:
    pages = PageList(FIRST_ROWS, NUM_BYTES, page_at)
    assert (len(pages), pages.num_rows, pages.num_described) == (2, 7, 0)


def test_the_page_that_was_ready_first_is_the_page_for_all() -> None:
    pages: PageList

    def describe_while_another_does(position: int) -> Page:
        if position not in meanwhile:
            meanwhile[position] = page_at(position)
            meanwhile[position] = pages[position]
        return page_at(position)

    meanwhile: dict[int, Page] = {}
    pages = PageList(FIRST_ROWS, NUM_BYTES, describe_while_another_does)
    assert pages[0] is meanwhile[0]


def test_bytes_are_shared_by_the_rows_of_a_page() -> None:
    pages = PageList(FIRST_ROWS, NUM_BYTES, page_at)
    stored_bytes = StoredBytes(7, [pages])
    assert [stored_bytes(0, row) for row in (0, 1, 3, 5, 7)] == pytest.approx([0, 10, 30, 34, 38])


def test_bytes_of_columns_add_up_by_the_share_of_their_rows() -> None:
    pages = PageList(FIRST_ROWS, NUM_BYTES, page_at)
    items = PageList(np.array([0, 70]), np.array([700]), page_at)
    no_rows = PageList(np.array([0]), np.empty(0, np.int64), page_at)
    stored_bytes = StoredBytes(7, [pages, items, no_rows])
    assert stored_bytes(1, 3) == pytest.approx(20 + 200)
    assert StoredBytes(0, [])(0, 0) == 0


def test_pages_between_which_floats_see_no_row_take_no_bytes() -> None:
    bounds = np.array([0, 1 << 60, (1 << 60) + 1], np.int64)
    pages = PageList(bounds, np.array([8, 8]), page_at)
    assert StoredBytes(1 << 60, [pages])(0, 1 << 60) == 8
