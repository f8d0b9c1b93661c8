"""Which encodings pages get, by what their values look like."""

from __future__ import annotations

import numpy as np
import pytest

from lance_core.encodings.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_core.encodings.byte_stream_split import ByteStreamSplit
from lance_core.encodings.choose import choose_values, chunk_bounds
from lance_core.encodings.choose_levels import choose_levels
from lance_core.encodings.flat import Flat
from lance_core.encodings.fsst import Fsst
from lance_core.encodings.general import Codec, General
from lance_core.encodings.hints import Hints
from lance_core.encodings.rle import Rle
from lance_core.encodings.values import FixedSizeLists, FixedWidth, Packed, Variable
from lance_core.encodings.variable import VariableWidth
from lance_core.encodings.version import FileVersion
from lance_core.errors import UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.schema.field import LanceField
from tests.encoded_values import fixed, of_kind, strings_of

NEW, OLD = FileVersion.V2_2, FileVersion.V2_1
PROSE = [b"a price of %d dollars was paid for the lot" % number for number in range(3000)]
WORDS = [b"red", b"green", b"blue"]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def field(logical_type, *children):
    inner = tuple(LanceField(FieldId(1), "y", child, nullable=False) for child in children)
    return LanceField(FieldId(0), "x", logical_type, nullable=True, children=inner)


def of_numbers(array, version=NEW, **hints):
    return choose_values(fixed(array), field("int64"), Hints(**hints), version)


def of_strings(items, version=NEW, logical_type="string", **hints):
    return choose_values(strings_of(items), field(logical_type), Hints(**hints), version)


def test_numbers_that_use_all_bits_stay_as_they_are(rng):
    assert of_numbers(rng.integers(0, 2**64, 5000, np.uint64)).encoding == Flat(64)


def test_numbers_that_use_few_bits_are_packed():
    assert of_numbers(np.arange(5000)).encoding == InlineBitpacking(64)


def test_a_page_too_short_for_a_packed_block_stays_as_it_is():
    assert of_numbers(np.arange(50)).encoding == Flat(64)


def test_numbers_that_repeat_become_runs():
    assert of_numbers(np.repeat(np.arange(50, dtype=np.int32) << 24, 100)).encoding == Rle(32)


def test_a_threshold_of_zero_forbids_runs():
    numbers = np.repeat(np.arange(50, dtype=np.int32), 100)
    assert of_numbers(numbers, rle_threshold=0.0).encoding == InlineBitpacking(32)


def test_few_wide_numbers_get_a_dictionary_only_where_readers_know_one(rng):
    numbers = rng.integers(0, 2**60, 5)[rng.integers(0, 5, 5000)]
    choice = of_numbers(numbers)
    assert choice.dictionary.num_values == 5
    assert choice.values.bits == 32
    assert of_numbers(numbers, OLD).dictionary is None


def test_few_numbers_of_32_bits_get_no_dictionary(rng):
    numbers = rng.integers(0, 2**31, 5, np.int32)[rng.integers(0, 5, 5000)]
    assert of_numbers(numbers).dictionary is None


def test_numbers_of_a_dictionary_are_packed(rng):
    numbers = rng.integers(0, 2**20, 2000)[rng.integers(0, 2000, 5000).repeat(20)]
    choice = of_numbers(numbers)
    assert choice.encoding == Rle(32)
    assert isinstance(choice.dictionary_encoding, OutOfLineBitpacking)


def test_compression_is_used_where_it_shrinks(rng):
    numbers = np.round(rng.normal(100, 1, 5000), 1)
    choice = of_numbers(numbers, compression="zstd", dict_divisor=1 << 30)
    assert isinstance(choice.encoding, General)
    assert choice.encoding.codec == Codec("zstd")
    noise = rng.integers(0, 2**64, 5000, np.uint64)
    assert of_numbers(noise, compression="zstd").encoding == Flat(64)


def test_byte_streams_are_split_on_request(rng):
    numbers = np.cumsum(rng.random(5000, np.float32))
    choice = of_numbers(numbers.astype(np.float32), compression="lz4", bss="on")
    assert choice.encoding == General(Codec("lz4_raw"), ByteStreamSplit(32))


def test_no_compression_means_no_packing_either():
    assert of_numbers(np.arange(5000), compression="none").encoding == Flat(64)


def test_prose_becomes_symbols():
    assert isinstance(of_strings(PROSE).encoding, Fsst)


def test_random_bytes_stay_as_they_are(rng):
    items = [rng.bytes(16) for _ in range(3000)]
    assert of_strings(items, logical_type="binary").encoding == VariableWidth(32)


def test_large_types_keep_wide_offsets(rng):
    items = [rng.bytes(16) for _ in range(300)]
    assert of_strings(items, logical_type="large_binary").encoding == VariableWidth(64)


@pytest.mark.parametrize("size", [3, 1000])
def test_few_strings_get_a_dictionary_however_long(size, rng):
    items = [WORDS[index] * size for index in rng.integers(0, 3, 3000)]
    choice = of_strings(items)
    assert choice.dictionary.num_values == 3
    assert not choice.zipped
    assert choice.dictionary_encoding == General(Codec("lz4_raw"), VariableWidth(32))


def test_dictionaries_of_old_files_are_not_compressed(rng):
    items = [WORDS[index] * 100 for index in rng.integers(0, 3, 3000)]
    assert of_strings(items, OLD).dictionary_encoding == VariableWidth(32)


def test_long_strings_are_zipped_and_huge_ones_compressed():
    items = [b"lorem ipsum %d " % index * 40 for index in range(200)]
    choice = of_strings(items)
    assert choice.zipped
    assert isinstance(choice.encoding, Fsst)
    huge = of_strings([b"lorem ipsum %d " % index * 4000 for index in range(4)])
    assert huge.encoding == General(Codec("zstd"), VariableWidth(32))


def test_the_structure_asked_for_is_taken():
    assert of_numbers(np.arange(5000), structural_encoding="fullzip").zipped
    assert not of_strings([b"x" * 300] * 2 + [b"y"], structural_encoding="miniblock").zipped


@pytest.mark.parametrize(("dimension", "zipped"), [(63, False), (64, True)])
def test_lists_are_zipped_from_256_bytes_on(dimension, zipped, rng):
    items = fixed(rng.random(dimension * 10, np.float32))
    values = FixedSizeLists(items, dimension, 10)
    choice = choose_values(values, field("fixed_size_list:float:64"), Hints(), NEW)
    assert choice.zipped == zipped


@pytest.mark.parametrize(
    ("bits", "size"), [(1, 4096), (8, 4096), (16, 2048), (32, 1024), (64, 512), (128, 256)]
)
def test_chunks_of_plain_numbers_stay_below_8_kib(bits, size, rng):
    data = rng.integers(0, 2 if bits == 1 else 256, 5000 * max(bits // 8, 1), np.uint8)
    choice = choose_values(FixedWidth(data, bits, 5000), field("x"), Hints(), OLD)
    assert chunk_bounds(choice)[1] == size
    assert chunk_bounds(choice, 64)[1] == 64


def test_packed_rows_of_strings_need_a_new_file():
    rows = Packed((strings_of([b"a"]),), 1)
    with pytest.raises(UnsupportedFeatureError, match=r"'x': its child 'y' of type string"):
        choose_values(rows, field("struct", "string"), Hints(), OLD)


def test_packed_rows_take_no_booleans():
    rows = Packed((fixed(np.array([True])),), 1)
    with pytest.raises(UnsupportedFeatureError, match="drop lance-encoding:packed"):
        choose_values(rows, field("struct", "bool"), Hints(), NEW)


def test_rare_nulls_become_runs_where_readers_know_them():
    levels = np.zeros(4096, np.uint16)
    levels[1000] = 1
    bounds = np.arange(0, 4097, 512)
    assert choose_levels(levels, bounds, NEW) == Rle(16)
    assert choose_levels(levels, bounds, OLD) == InlineBitpacking(16)


def test_levels_of_long_chunks_are_packed_out_of_line(rng):
    levels = rng.integers(0, 2, 4096, np.uint16)
    assert choose_levels(levels, np.array([0, 4096]), OLD) == OutOfLineBitpacking(16, 1)


def test_few_levels_stay_as_they_are():
    levels = np.array([0, 3, 1], np.uint16)
    assert choose_levels(levels, np.array([0, 3]), NEW) == Flat(16)


@pytest.mark.parametrize("dimension", [8, 128])
def test_lists_of_nulls_alone_are_zipped_without_data(dimension):
    items = fixed(np.zeros(dimension * 10, np.float32))
    nulls = FixedWidth(items.data, 32, items.num_values, np.zeros(items.num_values, np.bool_))
    values = FixedSizeLists(nulls, dimension, 10)
    choice = choose_values(values, field("fixed_size_list:float:8"), Hints(), NEW)
    assert choice.zipped
    zipped = choice.encoding.encode_zipped(values)
    assert of_kind(FixedWidth, zipped).value_bytes == dimension // 8


def test_symbols_are_trained_on_pieces_from_all_over_long_strings():
    items = [b" ".join([b"%d" % index] * 60) for index in range(2000)]
    values = strings_of(items)
    encoding = choose_values(values, field("string"), Hints(), NEW).encoding
    assert isinstance(encoding, Fsst)
    assert len(of_kind(Variable, encoding.encode_zipped(values)).data) < 0.6 * len(values.data)


def test_empty_strings_become_no_symbols():
    assert of_strings([b""] * 10, compression="fsst").encoding == VariableWidth(32)
