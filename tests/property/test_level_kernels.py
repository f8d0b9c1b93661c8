"""Kernels on levels and dictionary indices agree with plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from lance_core.encodings.page_runs import PageRuns
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.dictionary import look_up
from lance_core.kernels.levels import peel_items, peel_lists

LEVELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=40)


@given(levels=LEVELS, base=st.integers(0, 3), above=st.integers(0, 3), has_levels=st.booleans())
def test_lists_are_peeled_as_the_format_says(
    levels: list[tuple[int, int]], base: int, above: int, has_levels: bool
) -> None:
    repetition = [r for r, _ in levels]
    definition = [d if has_levels else 0 for _, d in levels]
    highest, empty = base + above, base + 1 if above > 0 else 0
    offsets, valid, outer, children = [], [], [], 0
    for r, d in zip(repetition, definition, strict=True):
        if r == 0:
            children += 1
            continue
        outer.append((r - 1, d))
        if d <= highest:
            offsets.append(children)
            valid.append(d <= base or d == empty)
            children += d <= base
    begun = sum(r != 0 for r in repetition)
    found, flags = np.empty(begun + 1, np.int64), np.empty(begun, np.bool_)
    outer_r, outer_d = np.empty(begun, np.uint16), np.empty(begun * has_levels, np.uint16)
    stored = np.array(definition if has_levels else [], np.uint16)
    lists = peel_lists(
        np.array(repetition, np.uint16),
        stored,
        base,
        highest,
        empty,
        found,
        flags,
        outer_r,
        outer_d,
    )
    assert found[: lists + 1].tolist() == [*offsets, children]
    assert flags[:lists].tolist() == valid
    assert outer_r.tolist() == [r for r, _ in outer]
    assert outer_d.tolist() == [d for _, d in outer] * has_levels


@given(
    definition=st.lists(st.integers(0, 9), max_size=40),
    lists_at_level=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    lists_passed=st.integers(0, 3),
    levels_passed=st.integers(0, 4),
)
def test_items_are_peeled_as_the_format_says(
    definition: list[int], lists_at_level: list[int], lists_passed: int, levels_passed: int
) -> None:
    capped = [min(level, len(lists_at_level) - 1) for level in definition]
    wanted = [level <= levels_passed for level in capped if lists_at_level[level] <= lists_passed]
    valid = np.empty(len(definition), np.bool_)
    table = np.array(lists_at_level, np.int64)
    levels = np.array(definition, np.uint16)
    slots = peel_items(levels, table, lists_passed, levels_passed, valid)
    assert valid[:slots].tolist() == wanted


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans()), max_size=30),
    sizes=st.lists(st.integers(0, 6), min_size=3, max_size=3),
    has_nulls=st.booleans(),
    kind=st.sampled_from(["u1", "u2", "u4", "u8"]),
)
def test_indices_become_positions_among_all_items(
    rows: list[tuple[int, int, bool]], sizes: list[int], has_nulls: bool, kind: str
) -> None:
    firsts = np.cumsum([0, *sizes])[:3]
    nulls = [is_null and has_nulls for _, _, is_null in rows]
    bad = [
        row
        for row, ((page, index, _), is_null) in enumerate(zip(rows, nulls, strict=True))
        if not is_null and index >= sizes[page]
    ]
    out = np.empty(len(rows), np.uint64)
    runs = PageRuns.of_rows(np.array([page for page, _, _ in rows], np.int64))
    found = look_up(
        np.array([index for _, index, _ in rows], kind),
        runs.numbers,
        runs.bounds,
        firsts,
        np.array(sizes, np.int64),
        np.array(nulls if has_nulls else [], np.uint16),
        np.empty(0, np.uint64),
        out,
    )
    assert found == (bad[0] if bad else DONE)
    if not bad:
        assert out.tolist() == [
            0 if is_null else int(firsts[page]) + index
            for (page, index, _), is_null in zip(rows, nulls, strict=True)
        ]


@given(
    pages=st.lists(st.integers(0, 3), max_size=30), ends=st.tuples(st.integers(0), st.integers(0))
)
def test_cut_runs_are_the_runs_of_the_rows_cut(pages: list[int], ends: tuple[int, int]) -> None:
    start, stop = sorted(end % (len(pages) + 1) for end in ends)
    cut = PageRuns.of_rows(np.array(pages, np.int64)).slice(start, stop)
    assert cut.numbers[cut.run_of_rows()].tolist() == pages[start:stop]
    assert cut.bounds[0] == 0
    assert cut.bounds[-1] == stop - start


@given(rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=30))
def test_numbers_are_looked_up_in_the_items_of_their_page(rows: list[tuple[int, int]]) -> None:
    sizes = np.array([4, 1, 3])
    firsts = np.cumsum(sizes) - sizes
    items = np.arange(100, 108, dtype=np.uint64)
    bad = [row for row, (page, index) in enumerate(rows) if index >= sizes[page]]
    runs = PageRuns.of_rows(np.array([page for page, _ in rows], np.int64))
    indices = np.array([index for _, index in rows], np.uint32)
    none, out = np.empty(0, np.uint16), np.empty(len(rows), np.uint64)
    found = look_up(indices, runs.numbers, runs.bounds, firsts, sizes, none, items, out)
    assert found == (bad[0] if bad else DONE)
    if not bad:
        assert out.tolist() == [items[firsts[page] + index] for page, index in rows]
