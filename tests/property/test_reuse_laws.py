from __future__ import annotations

import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pyroaring import BitMap, BitMap64

from lance_core.errors import CorruptFileError
from lance_core.kernels.reuse import bits_of_runs, select_runs
from lance_core.table.reuse_history import history_from_bytes, history_to_content
from lance_core.table.reuse_map import AddressMap
from lance_core.table.treemap import OffsetRuns, decode_bitmaps, decode_treemap, encode_treemap
from tests.reuse_histories import Compactions, random_compactions

NO_ROWS = OffsetRuns(np.zeros(0, np.int64), np.zeros(0, np.int64))

seeds = st.integers(0, 2**32 - 1)


def sparse(rng: np.random.Generator) -> BitMap:
    return BitMap(rng.integers(0, 2**32, 50, np.uint64).tolist())


def long_run(rng: np.random.Generator) -> BitMap:
    return BitMap(range(int(rng.integers(0, 1000)), int(rng.integers(70_000, 400_000))))


def dense(rng: np.random.Generator) -> BitMap:
    return BitMap(np.flatnonzero(rng.random(150_000) < rng.random()).astype(np.uint32))


def rows_of(runs: OffsetRuns) -> BitMap:
    rows = BitMap()
    for start, end in zip(runs.starts.tolist(), runs.ends.tolist(), strict=True):
        rows.add_range(start, end)
    return rows


@given(seed=seeds, kinds=st.lists(st.sampled_from([sparse, long_run, dense]), max_size=4))
def test_treemaps_come_back_as_runs_that_do_not_touch(seed: int, kinds) -> None:
    rng = np.random.default_rng(seed)
    parts = {fragment * 3: kind(rng) for fragment, kind in enumerate(kinds)}
    data = encode_treemap({**parts, 2**32 - 2: BitMap()})
    whole = BitMap64.deserialize(data)
    assert len(whole) == sum(len(part) for part in parts.values())
    without_runs = b"".join(
        struct.pack("<I", key) + BitMap(part.to_array()).serialize() for key, part in parts.items()
    )
    for serialized in (data, struct.pack("<Q", len(parts)) + without_runs):
        found = decode_treemap(serialized, "x")
        for key, part in parts.items():
            assert rows_of(found.get(key, NO_ROWS)) == part
        bitmaps = decode_bitmaps(serialized, "x")
        assert {key: bitmaps.get(key, BitMap()) for key in parts} == parts
        for runs in found.values():
            assert (runs.starts[1:] > runs.ends[:-1]).all()
            assert (runs.lengths > 0).all()


@given(seed=seeds, data=st.data())
def test_a_damaged_treemap_is_corrupt_or_another_treemap(seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    good = encode_treemap({0: sparse(rng), 7: BitMap(range(5000)), 9: BitMap(range(0, 20_000, 2))})
    cut = data.draw(st.integers(0, len(good) - 1))
    for decode in (decode_treemap, decode_bitmaps):
        with pytest.raises(CorruptFileError):
            decode(good[:cut], "x")
    bad = bytearray(good)
    bad[data.draw(st.integers(0, 300))] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptFileError):
        bitmaps = decode_bitmaps(bytes(bad), "x")
        assert all(len(bitmap.to_array()) == len(bitmap) for bitmap in bitmaps.values())
    try:
        found = decode_treemap(bytes(bad), "x")
    except CorruptFileError:
        return
    for runs in found.values():
        assert (runs.starts[1:] > runs.ends[:-1]).all()
        assert (runs.lengths > 0).all()
        assert runs.span <= 2**32


@given(seed=seeds)
def test_every_address_leads_to_where_its_row_is_now(seed: int) -> None:
    table = random_compactions(seed)
    addresses = np.random.default_rng(seed).permutation(table.all_addresses())
    found = AddressMap(table.history, "x").map_addresses(addresses)
    table.check(addresses, found)


@given(seed=seeds, num_rows=st.integers(2000, 6000))
def test_long_runs_and_bits_lead_alike(seed: int, num_rows: int) -> None:
    rng = np.random.default_rng(seed)
    table = Compactions()
    for _ in range(3):
        table.append(num_rows)
    for step in range(3):
        for fragment in list(table.rows):
            # few deletions leave runs, many leave bits
            share = 0.2 if (fragment + step) % 2 == 0 else 0.0002
            for offset in np.flatnonzero(rng.random(len(table.rows[fragment])) < share).tolist():
                table.delete(fragment, offset)
        table.compact([(list(table.rows), num_rows // 2 + step)])
    addresses = table.all_addresses()
    table.check(addresses, AddressMap(table.history, "x").map_addresses(addresses))


@given(seed=seeds)
def test_mapping_what_is_mapped_changes_nothing(seed: int) -> None:
    table = random_compactions(seed)
    address_map = AddressMap(table.history, "x")
    once = address_map.map_addresses(table.all_addresses())
    np.testing.assert_array_equal(address_map.map_addresses(once), once)


@given(seed=seeds)
def test_a_history_may_be_applied_in_two_parts(seed: int) -> None:
    table = random_compactions(seed)
    history = table.history
    cut = len(history.versions) // 2
    old, new = (type(history)(part) for part in (history.versions[:cut], history.versions[cut:]))
    addresses = table.all_addresses()
    half_way = AddressMap(old, "x").map_addresses(addresses)
    np.testing.assert_array_equal(
        AddressMap(new, "x").map_addresses(half_way),
        AddressMap(history, "x").map_addresses(addresses),
    )


@given(seed=seeds)
def test_histories_survive_their_serialization(seed: int) -> None:
    history = random_compactions(seed).history
    assert history_from_bytes(history_to_content(history).SerializeToString(), "x") == history


@given(seed=seeds, members=st.sets(st.integers(0, 30)))
def test_folding_twice_is_folding_once(seed: int, members: set[int]) -> None:
    history = random_compactions(seed).history
    once = history.fold(BitMap(members))
    assert history.fold(once) == once


@given(seed=seeds)
def test_a_segment_of_all_fragments_still_covers_them_wherever_its_rows_went(seed: int) -> None:
    table = random_compactions(seed)
    ever = BitMap(range(table.next_id))
    assert table.history.fold(ever) == BitMap(table.rows)


@given(seed=seeds)
def test_no_fragment_is_covered_that_has_rows_from_outside(seed: int) -> None:
    table = random_compactions(seed)
    rng = np.random.default_rng(seed)
    stored = BitMap(np.flatnonzero(rng.random(table.next_id) < 0.7).astype(np.uint32))
    covered = table.history.fold(stored)
    for fragment in covered:
        for row in table.rows.get(fragment, []):
            if row is not None:
                assert any(address >> 32 in stored for address in row)


@given(seed=seeds, num_bits=st.integers(0, 400))
def test_bits_of_runs_count_what_stands_before(seed: int, num_bits: int) -> None:
    bits = np.random.default_rng(seed).random(num_bits) < 0.5
    edges = np.diff(bits.astype(np.int8), prepend=np.int8(0), append=np.int8(0))
    table = bits_of_runs(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1))
    found = np.unpackbits(table[:, 0].copy().view(np.uint8), bitorder="little")
    np.testing.assert_array_equal(np.flatnonzero(found), np.flatnonzero(bits))
    for word, before in enumerate(table[:, 1].tolist()):
        assert before == bits[: 64 * word].sum()


@given(seed=seeds, num_bits=st.integers(0, 300))
def test_selected_runs_hold_the_rows_of_the_numbers(seed: int, num_bits: int) -> None:
    rng = np.random.default_rng(seed)
    edges = np.flatnonzero(rng.random(num_bits) < 0.3)
    edges = edges[: len(edges) // 2 * 2]
    starts, ends = edges[::2].copy(), edges[1::2].copy()
    rows = np.concatenate([np.arange(0), *map(np.arange, starts, ends)])
    cuts = np.sort(rng.integers(0, len(rows) + 1, 2 * int(rng.integers(0, 6))))
    numbers = np.concatenate([np.arange(0), *map(np.arange, cuts[::2], cuts[1::2])])
    found = select_runs(starts, ends, cuts[::2].copy(), cuts[1::2].copy())
    selected = np.concatenate([np.arange(0), *map(np.arange, *found)])
    np.testing.assert_array_equal(selected, rows[numbers])
