from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pyroaring import BitMap

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.ids import FragmentId
from lance_core.proto.frag_reuse_pb2 import FragmentReuseIndexDetails
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE
from lance_core.table.reuse_history import (
    FragmentDigest,
    ReuseGroup,
    ReuseHistory,
    ReuseVersion,
    history_from_bytes,
    history_from_content,
    history_to_content,
)
from lance_core.table.reuse_map import AddressMap
from lance_core.table.treemap import encode_treemap

# The complete example of the table format page: 0 + 1 -> 4 and 2 + 3 -> 5, no deletions.
PART = "3b300000 01 0000 e703 0100 0000 e703"
EXAMPLE = bytes.fromhex(
    "0a9101 0a8e01 0804"
    "1a43 0a2e 0200000000000000" + f"00000000 {PART} 01000000 {PART}"
    "1203 10e807  1205 0801 10e807  1a05 0804 10d00f"
    "1a45 0a2e 0200000000000000" + f"02000000 {PART} 03000000 {PART}"
    "1205 0802 10e807  1205 0803 10e807  1a05 0805 10d00f"
)


def digest(fragment: int, num_rows: int, num_deleted: int = 0) -> FragmentDigest:
    return FragmentDigest(FragmentId(fragment), num_rows, num_deleted)


def group(old: dict[int, tuple[int, list[int]]], new: dict[int, int]) -> ReuseGroup:
    """Return a group of fragments of so many rows, of which some survived."""
    return ReuseGroup(
        encode_treemap({fragment: BitMap(kept) for fragment, (_, kept) in old.items()}),
        tuple(digest(f, rows, rows - len(kept)) for f, (rows, kept) in old.items()),
        tuple(digest(f, rows) for f, rows in new.items()),
    )


def history(*groups: ReuseGroup) -> ReuseHistory:
    return ReuseHistory(tuple(ReuseVersion(n, (each,)) for n, each in enumerate(groups, 4)))


def checked(*groups: ReuseGroup) -> ReuseHistory:
    return history_from_content(history_to_content(history(*groups)), "x")


def mapped(found: ReuseHistory, *rows: tuple[int, int]) -> list[tuple[int, int] | None]:
    addresses = np.array([fragment << 32 | offset for fragment, offset in rows], np.uint64)
    return [
        None if address == ROW_ADDRESS_TOMBSTONE else (address >> 32, address & 0xFFFF_FFFF)
        for address in AddressMap(found, "x").map_addresses(addresses).tolist()
    ]


TWO = group({0: (3, [0, 2]), 1: (2, [1])}, {4: 2, 5: 1})


def test_the_example_of_the_format_page_is_read_and_written() -> None:
    details = FragmentReuseIndexDetails.FromString(EXAMPLE)
    found = history_from_content(details.inline, "x")
    assert [v.dataset_version for v in found.versions] == [4]
    assert found.versions[0].new_ids == BitMap([4, 5])
    assert mapped(found, (0, 7), (1, 7), (3, 999), (6, 1)) == [(4, 7), (4, 1007), (5, 1999), (6, 1)]
    assert found.fold(BitMap([0, 1, 2, 3])) == BitMap([4, 5])
    assert FragmentReuseIndexDetails(inline=history_to_content(found)) == details


def test_survivors_fill_the_new_fragments_in_order() -> None:
    rows = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert mapped(checked(TWO), *rows) == [(4, 0), None, (4, 1), None, (5, 0)]


def test_the_order_is_that_of_the_list_and_not_of_the_ids() -> None:
    turned = group({1: (2, [0, 1]), 0: (1, [0])}, {9: 1, 7: 2})
    assert mapped(checked(turned), (1, 0), (1, 1), (0, 0)) == [(9, 0), (7, 0), (7, 1)]


def test_offsets_behind_the_end_are_deleted() -> None:
    assert mapped(checked(TWO), (0, 3), (1, 2**32 - 1)) == [None, None]


def test_a_fragment_without_survivors_leads_nowhere() -> None:
    assert mapped(checked(group({0: (3, [])}, {})), (0, 0), (0, 2)) == [None, None]


def test_no_history_leaves_addresses_alone() -> None:
    assert mapped(ReuseHistory(()), (0, 0), (7, 3)) == [(0, 0), (7, 3)]


def test_read_only_and_strided_addresses_are_taken() -> None:
    addresses = np.array([0, 1, 2, 3], np.uint64)
    addresses.flags.writeable = False
    assert AddressMap(checked(TWO), "x").map_addresses(addresses[::2]).tolist() == [
        4 << 32,
        4 << 32 | 1,
    ]


def test_tombstones_stay_tombstones() -> None:
    assert mapped(checked(TWO), (2**32 - 1, 2**32 - 1)) == [None]


@pytest.mark.parametrize(
    ("stored", "covered"),
    [
        ([0, 1, 2], [2, 3]),
        ([0, 2], [2]),
        ([2, 3], [2, 3]),
        ([0, 1, 3], [3]),
        ([], []),
        ([7], [7]),
    ],
)
def test_a_new_fragment_is_covered_if_all_its_sources_are(
    stored: list[int], covered: list[int]
) -> None:
    found = checked(group({0: (1, [0]), 1: (1, [0])}, {3: 2}))
    assert found.fold(BitMap(stored)) == BitMap(covered)


def test_half_way_coverage_is_led_on() -> None:
    chain = checked(
        group({0: (1, [0]), 1: (1, [0])}, {4: 2}), group({2: (1, [0]), 4: (2, [0, 1])}, {5: 3})
    )
    for stored in ([0, 1, 2], [2, 4], [5], [0, 1, 2, 5]):
        assert chain.fold(BitMap(stored)) == BitMap([5])
    assert chain.fold(BitMap([0, 2])) == BitMap()


def test_folding_does_not_change_what_is_given() -> None:
    stored = BitMap([0, 1])
    checked(TWO).fold(stored)
    assert stored == BitMap([0, 1])


def test_a_few_bytes_may_stand_for_four_billion_rows_and_take_no_memory() -> None:
    rows = BitMap()
    rows.add_range(1, 2**32)
    huge = ReuseGroup(
        encode_treemap({0: rows}), (digest(0, 2**32, 1),), (digest(1, 2**31), digest(2, 2**31 - 1))
    )
    found = checked(huge)
    assert AddressMap(found, "x").nbytes < 1000
    assert mapped(found, (0, 0), (0, 1), (0, 2**32 - 1)) == [None, (1, 0), (2, 2**31 - 2)]


def test_a_tagged_history_is_refused_by_name() -> None:
    content = FragmentReuseIndexDetails.InlineContent(transitions=[b""])
    with pytest.raises(UnsupportedFeatureError, match="tagged"):
        history_from_content(content, "x")


def test_bytes_that_are_no_history_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="no fragment reuse history"):
        history_from_bytes(b"\xff\xff", "x")


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([group({0: (2, [0, 1])}, {4: 1})], "2 rows survived"),
        ([group({0: (1, [0])}, {4: 1}), group({0: (1, [0])}, {5: 1})], "compacted twice"),
        ([group({0: (1, [0])}, {4: 1}), group({1: (1, [0])}, {4: 1})], "there before"),
        ([group({4: (1, [0])}, {5: 1}), group({0: (1, [0])}, {4: 1})], "there before"),
        ([group({0: (1, [0])}, {0: 1})], "there before"),
        ([replace(TWO, old_fragments=(digest(2**32 - 1, 5, 2),))], "does not fit"),
        ([replace(TWO, old_fragments=(digest(0, 1, 2),))], "2 of them deleted"),
        ([replace(TWO, old_fragments=(digest(0, 2**32 + 1, 0),))], "fragment 0 has"),
        ([replace(TWO, old_fragments=(*TWO.old_fragments, TWO.old_fragments[0]))], "survived"),
    ],
)
def test_histories_that_contradict_themselves_are_corrupt(
    groups: list[ReuseGroup], problem: str
) -> None:
    with pytest.raises(CorruptFileError, match=problem):
        checked(*groups)


@pytest.mark.parametrize(
    ("survivors", "problem"),
    [
        ({0: BitMap([0, 1, 2])}, "3 rows of fragment 0"),
        ({0: BitMap([0, 3]), 1: BitMap([1])}, "up to row 4"),
        ({0: BitMap([0, 2]), 9: BitMap([1])}, "fragment 9"),
    ],
)
def test_survivors_that_do_not_fit_their_fragments_are_corrupt(
    survivors: dict[int, BitMap], problem: str
) -> None:
    bad = replace(TWO, changed_row_addrs=encode_treemap(survivors))
    with pytest.raises(CorruptFileError, match=problem):
        AddressMap(checked(bad), "x")
