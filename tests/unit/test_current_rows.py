"""Rows that index files name are led to where they are at a version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyroaring import BitMap

from lance_core.cache.byte_cache import ByteCache
from lance_core.ids import FragmentId
from lance_core.index.scalar.answer import RowAnswer
from lance_core.index.scalar.fragment_rows import every_offset
from lance_core.query import current_rows
from lance_core.query.current_rows import CurrentRows
from lance_core.table.files import TableFiles
from lance_core.table.frag_reuse import FragmentReuse
from lance_core.table.reuse_history import FragmentDigest, ReuseGroup, ReuseHistory, ReuseVersion
from lance_core.table.reuse_map import AddressMap
from lance_core.table.row_id_index import RowIdIndex
from lance_core.table.treemap import encode_treemap

if TYPE_CHECKING:
    import pytest


def rows_at(
    sizes: dict[int, int], reuse: FragmentReuse | None = None, *, stable: bool = False
) -> CurrentRows:
    fragments = {key: SimpleNamespace(physical_rows=size) for key, size in sizes.items()}
    snapshot: Any = SimpleNamespace(fragments_by_id=fragments, has_stable_row_ids=stable)
    return CurrentRows(TableFiles(ByteCache(0)), snapshot, reuse)


def digest(number: int, num_rows: int, num_deleted: int = 0) -> FragmentDigest:
    return FragmentDigest(FragmentId(number), num_rows, num_deleted)


def reuse_of(*groups: ReuseGroup) -> FragmentReuse:
    history = ReuseHistory(tuple(ReuseVersion(n, (group,)) for n, group in enumerate(groups)))
    return FragmentReuse("u", history, AddressMap(history, "x"))


def test_rows_of_fragments_that_are_not_covered_are_left_out() -> None:
    given = RowAnswer.exact({0: BitMap([1]), 1: BitMap([2]), 9: BitMap([3])}, {1: BitMap([5])})
    found = rows_at({0: 10, 1: 10}).translate(given, BitMap([1]), by_row_id=False)
    assert found.certain == {1: BitMap([2])}
    assert found.nulls == {1: BitMap([5])}
    assert found.is_exact


def test_offsets_behind_the_end_of_a_fragment_are_cut_off() -> None:
    given = RowAnswer.at_most({0: every_offset(), 1: BitMap([10, 11])})
    found = rows_at({0: 3, 1: 10}).translate(given, BitMap([0, 1]), by_row_id=False)
    assert found.possible == {0: BitMap([0, 1, 2])}
    assert not found.certain


def test_rows_follow_all_deferred_compactions() -> None:
    first = ReuseGroup(
        encode_treemap({0: BitMap([0, 2]), 1: BitMap([1])}),
        (digest(0, 3, 1), digest(1, 2, 1)),
        (digest(2, 3),),
    )
    second = ReuseGroup(
        encode_treemap({2: BitMap([1, 2])}), (digest(2, 3, 1), digest(5, 0)), (digest(6, 2),)
    )
    rows = rows_at({6: 2, 7: 4}, reuse_of(first, second))
    given = RowAnswer.exact({0: every_offset(), 1: BitMap([0, 1]), 7: BitMap([3])})
    found = rows.translate(given, BitMap([6, 7]), by_row_id=False)
    # row 2 of fragment 0 and row 1 of fragment 1 are left
    assert found.certain == {6: BitMap([0, 1]), 7: BitMap([3])}
    only_first = RowAnswer.exact({0: BitMap([0, 1])})
    assert rows.translate(only_first, BitMap([6, 7]), by_row_id=False).certain == {}


def test_stable_ids_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    index = RowIdIndex(
        np.array([0, 100, 1 << 33], np.uint64),
        np.array([5, 2, 1]),
        np.array([(3 << 32) | 10, 4 << 32, (4 << 32) | 7], np.uint64),
    )
    monkeypatch.setattr(current_rows, "row_id_index", lambda *_: index)
    rows = rows_at({3: 100, 4: 100}, stable=True)
    given = RowAnswer.exact({0: BitMap([1, 4, 5, 100, 102]), 2: BitMap([0])})
    found = rows.translate(given, BitMap([3, 4]), by_row_id=True)
    assert found.certain == {3: BitMap([11, 14]), 4: BitMap([0, 7])}
    every = rows.translate(RowAnswer.exact({0: every_offset()}), BitMap([3]), by_row_id=True)
    assert every.certain == {3: BitMap(range(10, 15))}
    by_address = RowAnswer.exact({3: BitMap([50])})
    assert rows.translate(by_address, BitMap([3, 4]), by_row_id=False).certain == {3: BitMap([50])}


def test_without_rows_there_are_no_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    none = np.empty(0, np.uint64)
    index = RowIdIndex(none, np.empty(0, np.int64), none)
    monkeypatch.setattr(current_rows, "row_id_index", lambda *_: index)
    rows = rows_at({3: 100}, stable=True)
    given = RowAnswer.exact({0: every_offset()})
    assert rows.translate(given, BitMap([3]), by_row_id=True).certain == {}


def test_all_rows_of_fragments_are_those_stored() -> None:
    assert rows_at({0: 3, 1: 0}).all_rows([0, 1]) == {0: BitMap([0, 1, 2])}
