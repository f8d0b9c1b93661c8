"""Decoding undoes encoding, in every context that an encoding knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.encodings.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_core.encodings.byte_stream_split import ByteStreamSplit
from lance_core.encodings.constant import AllNullElements
from lance_core.encodings.fixed_size_list import FixedSizeList
from lance_core.encodings.flat import Flat
from lance_core.encodings.fsst import Fsst, SymbolTable, compressed
from lance_core.encodings.fsst_train import train
from lance_core.encodings.general import Codec, General
from lance_core.encodings.packed_struct import PackedStruct
from lance_core.encodings.rle import Rle
from lance_core.encodings.values import AllNull, FixedSizeLists, FixedWidth, Packed
from lance_core.encodings.variable import VariableWidth
from lance_core.encodings.variable_packed_struct import PackedField, VariablePackedStruct
from tests.encoded_values import (
    described,
    fixed,
    of_kind,
    plain,
    strings_of,
    through_block,
    through_blocks,
    through_chunks,
    through_zipped,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.compression import Compression

ELEMENTS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
widths = st.sampled_from(list(ELEMENTS))
strings = st.lists(st.binary(max_size=30), max_size=30)
seeds = st.integers(0, 2**32)


def cut(num_values: int, cuts: list[int]) -> NDArray[np.int64]:
    """Return chunk bounds: from 0 over the cuts that lie inside to the end."""
    inside = {each for each in cuts if 0 < each < num_values}
    return np.array([0, *sorted(inside), num_values], np.int64)


cuts = st.lists(st.integers(1, 3000), max_size=5)


@pytest.mark.parametrize(
    "encoding",
    [
        Flat(1),
        Flat(96),
        VariableWidth(32),
        VariableWidth(64),
        InlineBitpacking(32),
        OutOfLineBitpacking(16, 3),
        Rle(64),
        ByteStreamSplit(64),
        General(Codec("zstd", 7), Flat(32)),
        General(Codec("lz4_raw"), ByteStreamSplit(32)),
        FixedSizeList(3, FixedSizeList(4, Flat(16), has_validity=True), has_validity=False),
        FixedSizeList(3, AllNullElements(), has_validity=True),
        PackedStruct((8, 64), Flat(72)),
    ],
)
def test_a_message_describes_the_encoding_that_wrote_it(
    encoding: Compression,
) -> None:
    assert described(encoding) == encoding


def test_a_message_keeps_the_symbols_of_fsst() -> None:
    symbols = np.zeros(256, np.uint64)
    lengths = np.zeros(256, np.uint8)
    symbols[:2] = ord("a"), int.from_bytes(b"the ", "little")
    lengths[:2] = 1, 4
    table = SymbolTable(symbols, lengths, is_identity=False)
    read = described(Fsst(table, VariableWidth(32)))
    assert isinstance(read, Fsst)
    np.testing.assert_array_equal(read.table.symbols, symbols)
    np.testing.assert_array_equal(read.table.lengths, lengths)
    assert not read.table.is_identity


@given(booleans=st.lists(st.booleans(), max_size=40), cuts=st.lists(st.integers(1, 40)))
def test_bits_survive_chunks(booleans: list[bool], cuts: list[int]) -> None:
    values = fixed(np.array(booleans, np.bool_))
    bounds = cut(len(booleans), cuts)
    assert plain(through_chunks(Flat(1), values, bounds)) == plain(values)


@given(data=st.binary(max_size=60), cuts=st.lists(st.integers(1, 40)))
def test_flat_values_survive_every_context(data: bytes, cuts: list[int]) -> None:
    values = fixed(np.frombuffer(data[: len(data) // 3 * 3], "V3"))
    bounds = cut(values.num_values, cuts)
    assert plain(through_chunks(Flat(24), values, bounds)) == plain(values)
    assert plain(through_blocks(Flat(24), values, bounds)) == plain(values)
    assert plain(through_zipped(Flat(24), values)) == plain(values)


@given(items=strings, cuts=st.lists(st.integers(1, 30)), bits=st.sampled_from([32, 64]))
def test_strings_survive_every_context(items: list[bytes], cuts: list[int], bits: int) -> None:
    values = strings_of([b"before", *items]).slice(1, len(items) + 1)
    bounds = cut(len(items), cuts)
    encoding = VariableWidth(bits)
    assert plain(through_chunks(encoding, values, bounds)) == items
    assert plain(through_block(encoding, values)) == items
    assert plain(through_zipped(encoding, values)) == items


@given(
    num_values=st.integers(0, 9),
    dimensions=st.tuples(st.integers(1, 9), st.integers(1, 5)),
    nulls=st.tuples(st.booleans(), st.booleans()),
    bits=st.sampled_from([1, 16]),
    cuts=st.lists(st.integers(1, 9)),
    seed=seeds,
)
def test_lists_survive_with_nulls_at_every_level(
    num_values: int,
    dimensions: tuple[int, int],
    nulls: tuple[bool, bool],
    bits: int,
    cuts: list[int],
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    outer, inner = dimensions
    count = num_values * outer
    validity = [
        rng.random(size) < 0.5 if has_nulls else None
        for size, has_nulls in zip((count, count * inner), nulls, strict=True)
    ]
    data = rng.integers(0, 2, count * inner, np.uint8 if bits == 1 else np.uint16)
    elements = FixedWidth(data.view(np.uint8), bits, len(data), validity[1])
    values = FixedSizeLists(FixedSizeLists(elements, inner, count, validity[0]), outer, num_values)
    encoding = FixedSizeList(outer, FixedSizeList(inner, Flat(bits), nulls[1]), nulls[0])
    bounds = cut(num_values, cuts)
    assert plain(through_chunks(encoding, values, bounds)) == plain(values)
    if num_values > 0:
        assert plain(through_zipped(encoding, values)) == plain(values)


@given(num_values=st.integers(1, 9), dimension=st.integers(1, 20))
def test_lists_of_nulls_have_no_data(num_values: int, dimension: int) -> None:
    values = FixedSizeLists(AllNull(num_values * dimension), dimension, num_values)
    encoding = FixedSizeList(dimension, AllNullElements(), has_validity=True)
    assert plain(through_zipped(encoding, values)) == plain(values)
    assert plain(through_chunks(encoding, values, cut(num_values, [2]))) == plain(values)


def narrow(bits: int, count: int, seed: int) -> FixedWidth:
    """Return numbers of which each thousand has another width."""
    rng = np.random.default_rng(seed)
    shifts = np.repeat(rng.integers(0, bits + 1, count // 1000 + 1), 1000)[:count]
    numbers = rng.integers(0, 2**bits, count, ELEMENTS[bits], endpoint=False)
    return fixed(np.where(shifts == bits, 0, numbers >> (shifts % bits).astype(ELEMENTS[bits])))


def runs(bits: int, count: int, seed: int) -> FixedWidth:
    """Return numbers with short and with very long runs."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([1, 2, 3, 300, 600], count)
    return fixed(np.repeat(rng.integers(0, 4, count, ELEMENTS[bits]), lengths)[:count])


counts = st.integers(0, 4000)


@given(bits=widths, count=counts, seed=seeds)
def test_inline_packed_numbers_survive_chunks_and_blocks(bits: int, count: int, seed: int) -> None:
    values = narrow(bits, count, seed)
    bounds = cut(count, list(range(1024, count, 1024)))
    for through in (through_chunks, through_blocks):
        decoded = through(InlineBitpacking(bits), values, bounds)
        np.testing.assert_array_equal(of_kind(FixedWidth, decoded).data, values.data)


@given(bits=widths, count=counts, cuts=cuts, seed=seeds)
def test_out_of_line_packed_numbers_survive_blocks(
    bits: int, count: int, cuts: list[int], seed: int
) -> None:
    values = narrow(bits, count, seed)
    width = max(int(values.integers().max(initial=0)).bit_length(), 1)
    encoding = OutOfLineBitpacking(bits, width)
    decoded = through_blocks(encoding, values, cut(count, cuts))
    np.testing.assert_array_equal(of_kind(FixedWidth, decoded).data, values.data)


@given(bits=widths, count=counts, cuts=cuts, seed=seeds)
def test_runs_survive_chunks_and_blocks(bits: int, count: int, cuts: list[int], seed: int) -> None:
    values = runs(bits, count, seed)
    for through in (through_chunks, through_blocks):
        decoded = through(Rle(bits), values, cut(count, cuts))
        np.testing.assert_array_equal(of_kind(FixedWidth, decoded).data, values.data)


@given(bits=st.sampled_from([32, 64]), count=counts, cuts=cuts, seed=seeds)
def test_split_streams_survive_chunks(bits: int, count: int, cuts: list[int], seed: int) -> None:
    values = narrow(bits, count, seed)
    decoded = through_chunks(ByteStreamSplit(bits), values, cut(count, cuts))
    np.testing.assert_array_equal(of_kind(FixedWidth, decoded).data, values.data)


@given(
    codec=st.sampled_from([Codec("zstd"), Codec("zstd", 9), Codec("lz4_raw")]),
    items=strings,
    cuts=st.lists(st.integers(1, 30)),
)
def test_compressed_strings_survive_every_context(
    codec: Codec, items: list[bytes], cuts: list[int]
) -> None:
    values = strings_of(items)
    encoding = General(codec, VariableWidth(32))
    assert plain(through_chunks(encoding, values, cut(len(items), cuts))) == items
    assert plain(through_block(encoding, values)) == items
    assert plain(through_zipped(encoding, values)) == items


@given(count=st.integers(1, 500), cuts=cuts, seed=seeds)
def test_compressed_numbers_survive_chunks(count: int, cuts: list[int], seed: int) -> None:
    values = runs(32, count, seed)
    for inner in (Flat(32), ByteStreamSplit(32), Rle(32)):
        decoded = through_chunks(General(Codec("zstd"), inner), values, cut(count, cuts))
        np.testing.assert_array_equal(of_kind(FixedWidth, decoded).data, values.data)


@given(count=st.integers(0, 30), cuts=st.lists(st.integers(1, 30)), seed=seeds)
def test_packed_rows_survive_chunks_and_alone(count: int, cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    children = (fixed(rng.integers(0, 9, count, np.uint8)), fixed(rng.random(count)))
    values = Packed(children, count)
    encoding = PackedStruct((8, 64), Flat(72))
    assert plain(through_chunks(encoding, values, cut(count, cuts))) == plain(values)
    assert plain(through_zipped(encoding, values)) == plain(values)


@given(
    items=st.lists(st.text("abcde \x00", max_size=40).map(str.encode) | st.binary(max_size=20)),
    cuts=st.lists(st.integers(1, 30)),
)
def test_strings_survive_symbols_trained_on_them(items: list[bytes], cuts: list[int]) -> None:
    values = strings_of(items)
    encoding = Fsst(train(values), VariableWidth(32))
    assert plain(through_chunks(encoding, values, cut(len(items), cuts))) == items
    assert plain(through_block(encoding, values)) == items
    assert plain(through_zipped(encoding, values)) == items


def test_prose_becomes_much_shorter() -> None:
    values = strings_of([b"the quick brown fox jumps over the lazy dog"] * 100)
    codes = compressed(values, train(values))
    assert len(codes.data) * 4 < len(values.data)


@given(
    count=st.integers(0, 20),
    has_nulls=st.booleans(),
    seed=seeds,
)
def test_packed_rows_of_strings_survive_alone(count: int, has_nulls: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = strings_of([b"x" * size for size in rng.integers(0, 9, count)])
    children = (fixed(rng.integers(0, 9, count, np.uint16)), texts)
    fields = (PackedField(Flat(16), 2, 0), PackedField(VariableWidth(64), 0, 8))
    valid = rng.random(count) < 0.5 if has_nulls else np.ones(count, np.bool_)
    values = Packed(children, count, valid if has_nulls else None)
    decoded = through_zipped(VariablePackedStruct(fields), values)
    expected = plain(Packed(children, count))
    rows = plain(decoded)
    assert [rows[row] for row in np.flatnonzero(valid)] == [
        expected[row] for row in np.flatnonzero(valid)
    ]
