"""Each decoding kernel does what a few lines of plain Python do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from lance_core.encodings.blocks import Blocks, blocks_of
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.fsst import ESCAPE, SLACK, expand, expanded_offsets
from lance_core.kernels.full_zip import unzip
from lance_core.kernels.gather import (
    deinterleave,
    find_strings,
    join_bits,
    join_bytes,
    join_offsets,
    join_values,
    pick_rows,
    select_values,
    selected_offsets,
)
from lance_core.kernels.memory import address_of
from lance_core.kernels.mini_block import parse_chunk_words, split_chunks
from lance_core.kernels.rle import repeat_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

strings = st.lists(st.binary(max_size=20), max_size=8)
chunks = st.lists(strings, max_size=4)


def counts_of(parts: list[list[bytes]]) -> NDArray[np.int64]:
    return np.array([len(part) for part in parts], np.int64)


@given(parts=st.lists(st.binary(max_size=30), max_size=6))
def test_byte_runs_are_joined_in_order(parts: list[bytes]) -> None:
    blocks = blocks_of(parts)
    out = np.empty(blocks.num_bytes, np.uint8)
    join_bytes(blocks.addresses, blocks.sizes, out)
    assert out.tobytes() == b"".join(parts)


@given(bitmaps=st.lists(hnp.arrays(np.bool_, st.integers(0, 40)), max_size=5))
def test_bits_are_spread_over_bytes(bitmaps: list[NDArray[np.bool_]]) -> None:
    packed = [np.packbits(bitmap, bitorder="little").tobytes() for bitmap in bitmaps]
    counts = np.array([len(bitmap) for bitmap in bitmaps], np.int64)
    out = np.empty(int(counts.sum()), np.uint8)
    blocks = blocks_of(packed)
    join_bits(blocks.addresses, counts, out)
    assert out.tolist() == [int(bit) for bitmap in bitmaps for bit in bitmap]


def string_chunk(values: list[bytes], width: int) -> bytes:
    """Encode strings as a mini-block chunk holds them: offsets from the chunk's start."""
    table = (len(values) + 1) * width
    ends = np.cumsum([table, *(len(value) for value in values)])
    return ends.astype(f"<u{width}").tobytes() + b"".join(values)


def join(parts: list[list[bytes]], blocks: Blocks, width: int) -> tuple[int, list[bytes]]:
    counts = counts_of(parts)
    offsets = np.zeros(int(counts.sum()) + 1, np.int64)
    bad = join_offsets(blocks.addresses, blocks.sizes, counts, width, offsets)
    if bad != DONE:
        return bad, []
    data = np.empty(int(offsets[-1]), np.uint8)
    join_values(blocks.addresses, counts, width, offsets, data)
    raw = data.tobytes()
    bounds = offsets.tolist()
    return bad, [raw[bounds[i] : bounds[i + 1]] for i in range(len(bounds) - 1)]


@given(parts=chunks, width=st.sampled_from([4, 8]))
def test_strings_of_many_chunks_are_joined(parts: list[list[bytes]], width: int) -> None:
    blocks = blocks_of([string_chunk(part, width) for part in parts])
    assert join(parts, blocks, width) == (DONE, [value for part in parts for value in part])


@given(values=st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=5), data=st.data())
def test_offsets_that_leave_their_chunk_are_found(values: list[bytes], data: st.DataObject) -> None:
    chunk = bytearray(string_chunk(values, 4))
    position = data.draw(st.integers(0, len(values)))
    chunk[position * 4 : position * 4 + 4] = (len(chunk) + 1).to_bytes(4, "little")
    assert join([values], blocks_of([bytes(chunk)]), 4)[0] == 0


@given(parts=chunks, data=st.data())
def test_single_strings_are_found_in_their_chunks(
    parts: list[list[bytes]], data: st.DataObject
) -> None:
    known = [(chunk, row) for chunk, part in enumerate(parts) for row in range(len(part))]
    wanted = data.draw(st.lists(st.sampled_from(known), max_size=6)) if known else []
    blocks = blocks_of([string_chunk(part, 4) for part in parts])
    home = np.array([chunk for chunk, _ in wanted], np.int64)
    rows = np.array([row for _, row in wanted], np.int64)
    addresses, sizes = np.empty(len(wanted), np.int64), np.empty(len(wanted), np.int64)
    table = (blocks.addresses, blocks.sizes, counts_of(parts), 4)
    assert find_strings(*table, home, rows, addresses, sizes) == DONE
    out = np.empty(int(sizes.sum()), np.uint8)
    join_bytes(addresses, sizes, out)
    assert out.tobytes() == b"".join(parts[chunk][row] for chunk, row in wanted)


@given(values=st.lists(st.binary(max_size=9), min_size=1, max_size=9), data=st.data())
def test_strings_are_selected_by_position(values: list[bytes], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=9))
    offsets = np.cumsum([0, *(len(value) for value in values)])
    new = np.cumsum([0, *(len(values[row]) for row in rows)])
    found = np.empty(len(rows) + 1, np.int64)
    assert selected_offsets(offsets, np.array(rows, np.int64), found) == DONE
    assert found.tolist() == new.tolist()
    assert selected_offsets(offsets, np.array([*rows, len(values)], np.int64), found) == len(rows)
    out = np.empty(int(new[-1]), np.uint8)
    raw = np.frombuffer(b"".join(values), np.uint8).copy()
    select_values(offsets, raw, np.array(rows, np.int64), new, out)
    assert out.tobytes() == b"".join(values[row] for row in rows)


@given(values=st.lists(hnp.arrays(np.uint32, st.integers(0, 20)), max_size=4))
def test_split_bytes_are_put_together(values: list[NDArray[np.uint32]]) -> None:
    split = [part.view(np.uint8).reshape(-1, 4).T.tobytes() for part in values]
    counts = np.array([len(part) for part in values], np.int64)
    out = np.empty(int(counts.sum()) * 4, np.uint8)
    blocks = blocks_of(split)
    deinterleave(blocks.addresses, counts, 4, out)
    assert out.tobytes() == b"".join(part.tobytes() for part in values)


runs = st.lists(st.tuples(st.integers(0, 2**16 - 1), st.integers(0, 255)), max_size=9)


@given(parts=st.lists(runs, max_size=4), overrun=st.integers(0, 3))
def test_runs_are_repeated_up_to_the_count(
    parts: list[list[tuple[int, int]]], overrun: int
) -> None:
    values = blocks_of([np.array([v for v, _ in part], "<u2").tobytes() for part in parts])
    lengths = blocks_of([bytes(length for _, length in part) for part in parts])
    repeated = [[v for v, length in part for _ in range(length)] for part in parts]
    wanted = [part[: max(0, len(part) - overrun)] for part in repeated]
    counts = np.array([len(part) for part in wanted], np.int64)
    out = np.empty(int(counts.sum()), np.uint16)
    bad = repeat_runs(values.addresses, values.sizes, lengths.addresses, lengths.sizes, counts, out)
    assert bad == DONE
    assert out.tolist() == [value for part in wanted for value in part]


def test_runs_that_end_too_early_are_found() -> None:
    values, lengths = blocks_of([b"\x07\x00"]), blocks_of([b"\x05"])
    out = np.empty(6, np.uint16)
    bad = repeat_runs(
        values.addresses,
        values.sizes,
        lengths.addresses,
        lengths.sizes,
        np.array([6], np.int64),
        out,
    )
    assert bad == 0


SYMBOLS = [b"a", b"the ", b"12345678", b"xy"]


def fsst_encode(value: bytes) -> bytes:
    """Encode greedily: a symbol where one fits, else an escaped byte."""
    codes = bytearray()
    while value:
        code = next((i for i, symbol in enumerate(SYMBOLS) if value.startswith(symbol)), None)
        codes += bytes([ESCAPE, value[0]]) if code is None else bytes([code])
        value = value[1 if code is None else len(SYMBOLS[code]) :]
    return bytes(codes)


OTHER_SYMBOLS = [b"tuvwxyz", b"q", b"", b"12"]


def fsst_decode(encoded: list[bytes], tables: list[int] | None = None) -> tuple[int, list[bytes]]:
    symbols, lengths = np.zeros((2, 256), np.uint64), np.zeros((2, 256), np.uint8)
    for table, of_table in enumerate([SYMBOLS, OTHER_SYMBOLS]):
        for code, symbol in enumerate(of_table):
            symbols[table, code] = int.from_bytes(symbol, "little")
            lengths[table, code] = len(symbol)
    table_of = np.array([0] * len(encoded) if tables is None else tables, np.int64)
    offsets = np.cumsum([0, *(len(value) for value in encoded)])
    data = np.frombuffer(b"".join(encoded), np.uint8).copy()
    ends = np.zeros(len(offsets), np.int64)
    bad = expanded_offsets(offsets, data, table_of, lengths, ends)
    if bad != DONE:
        return bad, []
    out = np.zeros(int(ends[-1]) + SLACK, np.uint8)
    expand(offsets, data, table_of, symbols, lengths, address_of(out))
    bounds = ends.tolist()
    return bad, [out[bounds[i] : bounds[i + 1]].tobytes() for i in range(len(encoded))]


words = st.lists(st.sampled_from([*SYMBOLS, b"z", b"\xff", b"\x00"]), max_size=12).map(b"".join)


@given(values=st.lists(words, max_size=6))
def test_fsst_expands_what_was_encoded(values: list[bytes]) -> None:
    assert fsst_decode([fsst_encode(value) for value in values]) == (DONE, values)


def test_each_value_is_expanded_by_its_own_table() -> None:
    assert fsst_decode([b"\x00\x01", b"\x00\x01"], [1, 0]) == (DONE, [b"tuvwxyzq", b"athe "])


def test_an_fsst_code_without_symbol_is_found() -> None:
    assert fsst_decode([b"\x00", b"\x09"])[0] == 1


def test_an_fsst_escape_at_the_end_of_a_value_is_found() -> None:
    assert fsst_decode([bytes([ESCAPE]), b"\x00"])[0] == 0


def padded(data: bytes) -> bytes:
    return data + b"\xfe" * (-len(data) % 8)


def chunk_of(levels: list[bytes], values: list[bytes], num_levels: int, word: int) -> bytes:
    header = num_levels.to_bytes(2, "little")
    header += b"".join(len(part).to_bytes(2, "little") for part in levels)
    header += b"".join(len(part).to_bytes(word, "little") for part in values)
    return padded(header) + b"".join(padded(part) for part in levels + values)


parts_of_chunk = st.tuples(
    st.lists(st.binary(max_size=20), min_size=1, max_size=1),
    st.lists(st.binary(max_size=20), min_size=2, max_size=2),
)


@given(parts=st.lists(parts_of_chunk, max_size=4), is_large=st.booleans())
def test_chunks_are_taken_apart(
    parts: list[tuple[list[bytes], list[bytes]]], is_large: bool
) -> None:
    word = 4 if is_large else 2
    blocks = blocks_of([chunk_of(*part, number, word) for number, part in enumerate(parts)])
    num_levels = np.empty(len(parts), np.int64)
    addresses, sizes = (np.empty((3, len(parts)), np.int64) for _ in range(2))
    bad = split_chunks(blocks.addresses, blocks.sizes, 1, is_large, num_levels, addresses, sizes)
    assert bad == DONE
    assert num_levels.tolist() == list(range(len(parts)))
    for chunk, (levels, values) in enumerate(parts):
        for part, wanted in enumerate(levels + values):
            out = np.empty(int(sizes[part, chunk]), np.uint8)
            join_bytes(addresses[part, chunk : chunk + 1], sizes[part, chunk : chunk + 1], out)
            assert out.tobytes() == wanted


@given(cut=st.integers(0, 39))
def test_a_chunk_that_is_too_short_for_its_parts_is_found(cut: int) -> None:
    chunk = chunk_of([b"abc"], [b"x" * 9, b"y" * 7], 3, 4)
    blocks = blocks_of([chunk[:cut]])
    found = np.empty((3, 1), np.int64)
    assert (
        split_chunks(
            blocks.addresses, blocks.sizes, 1, True, np.empty(1, np.int64), found, found.copy()
        )
        == 0
    )


def unzipped(data: bytes, length_bytes: int) -> tuple[int, list[int], list[bytes]]:
    blocks = blocks_of([data])
    totals = np.zeros(2, np.int64)
    controls = np.empty(0, np.uint32)
    addresses = sizes = np.empty(0, np.int64)
    shape = (1, 2, 1, 0, length_bytes)
    runs = (blocks.addresses, blocks.sizes)
    bad = unzip(*runs, *shape, controls, addresses, sizes, totals)
    if bad == DONE:
        controls = np.empty(totals[0], np.uint32)
        addresses, sizes = np.empty(totals[1], np.int64), np.empty(totals[1], np.int64)
        unzip(*runs, *shape, controls, addresses, sizes, totals)
    starts = (addresses - blocks.addresses[0]).tolist()
    spans = zip(starts, sizes.tolist(), strict=True)
    return bad, controls.tolist(), [data[start : start + size] for start, size in spans]


@given(
    entries=st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=20)), max_size=9),
    length_bytes=st.sampled_from([4, 8]),
)
def test_zipped_entries_are_taken_apart(
    entries: list[tuple[int, bytes]], length_bytes: int
) -> None:
    data = b""
    for level, value in entries:
        data += bytes([level])
        if level == 0:
            data += len(value).to_bytes(length_bytes, "little") + value
    bad, controls, values = unzipped(data, length_bytes)
    assert bad == DONE
    assert controls == [level for level, _ in entries]
    assert values == [value if level == 0 else b"" for level, value in entries if level <= 1]


@given(missing=st.integers(1, 11))
def test_a_zipped_entry_that_is_cut_off_is_found(missing: int) -> None:
    entry = b"\x00" + (7).to_bytes(4, "little") + b"seven b"
    assert unzipped((b"\x01" + entry)[:-missing], 4)[0] == 0


def chunks_of_words(
    words: list[tuple[int, int]], num_values: int, chunk_bytes: int
) -> list[tuple[int, int, int, int]] | None:
    """Return first value, values, first byte, bytes of chunks given as (log2 of values, units)."""
    counts = [1 << log for log, _ in words[:-1]]
    if len(words) > 0:
        counts.append(num_values - sum(counts))
    sizes = [units * 8 for _, units in words]
    if min(counts, default=0) < 0 or sum(counts) != num_values or sum(sizes) != chunk_bytes:
        return None
    starts = [sum(counts[:i]) for i in range(len(words))]
    first_bytes = [sum(sizes[:i]) for i in range(len(words))]
    return list(zip(starts, counts, first_bytes, sizes, strict=True))


chunk_words = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 1 << 12)), max_size=5)


@given(
    pages=st.lists(
        st.tuples(
            chunk_words, st.sampled_from([2, 4]), st.integers(-2, 9), st.sampled_from([0, 8])
        ),
        max_size=5,
    )
)
def test_chunk_words_are_running_sums_or_name_the_page_that_does_not_add_up(
    pages: list[tuple[list[tuple[int, int]], int, int, int]],
) -> None:
    buffers, num_values, chunk_bytes, expected = [], [], [], []
    for words, width, rest, excess in pages:
        coded = np.array([(units - 1) << 4 | log for log, units in words], f"<u{width}")
        buffers.append(coded.tobytes())
        num_values.append(max(0, sum(1 << log for log, _ in words[:-1]) + rest))
        chunk_bytes.append(sum(units * 8 for _, units in words) + excess)
        expected.append(chunks_of_words(words, num_values[-1], chunk_bytes[-1]))
    blocks = blocks_of(buffers)
    widths = np.array([width for _, width, _, _ in pages], np.int64)
    out = np.empty((4, int((blocks.sizes // widths).sum())), np.int64)
    bad = parse_chunk_words(
        blocks.addresses,
        blocks.sizes // widths,
        widths,
        np.array(num_values, np.int64),
        np.array(chunk_bytes, np.int64),
        out,
    )
    if None in expected:
        assert bad == expected.index(None)
    else:
        assert bad == DONE
        assert out.T.tolist() == [list(chunk) for page in expected for chunk in page or []]


@given(numbers=hnp.arrays(np.int64, st.integers(0, 10), elements=st.integers(0, 4)))
def test_rows_of_a_table_are_picked_by_number(numbers: NDArray[np.int64]) -> None:
    table = np.arange(15).reshape(5, 3)
    rows = np.empty((len(numbers), 3), np.int64)
    pick_rows(table, numbers, rows)
    np.testing.assert_array_equal(rows, table[numbers])
