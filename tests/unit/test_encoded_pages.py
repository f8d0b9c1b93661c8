"""Pages byte by byte: the worked examples of the format page, and which layout is taken."""

from __future__ import annotations

import struct
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.encode_levels import repetition_index
from lance_core.encodings.encode_page import encode_pages
from lance_core.encodings.shred import shred
from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.schema.from_arrow import schema_from_arrow

if TYPE_CHECKING:
    from lance_core.encodings.encode_page import EncodedPage

V2_1, V2_2 = FileVersion.V2_1, FileVersion.V2_2
LISTS = pa.list_(pa.int32())
EXAMPLE = [[1, 2], None, [], [3, None], [4], [], [5, 6, 7], [8]]


def pages_of(
    array: pa.Array, version: FileVersion = V2_2, metadata: dict[str, str] | None = None
) -> list[EncodedPage]:
    """Encode the only leaf of an array."""
    schema = pa.schema([pa.field("c", array.type, metadata=metadata)])
    (field,) = schema_from_arrow(schema).fields
    ((field_id, leaf),) = shred(field, array)
    owner = next(node for node in field.walk() if node.id == field_id)
    return encode_pages(leaf, owner, version)


def page_of(
    array: pa.Array, version: FileVersion = V2_2, metadata: dict[str, str] | None = None
) -> EncodedPage:
    """Encode the only leaf of an array as the only page."""
    (page,) = pages_of(array, version, metadata)
    return page


def test_lists_become_the_chunk_of_the_format_page() -> None:
    page = page_of(pa.array(EXAMPLE, LISTS))
    words, chunks, index = page.buffers
    assert words.tobytes() == struct.pack("<I", 0xC0)
    header, rest = chunks[:16].tobytes(), chunks[16:]
    assert header == struct.pack("<HHHI6x", 12, 24, 24, 36)
    assert rest[:24].view(np.uint16).tolist() == [1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1]
    assert rest[24:48].view(np.uint16).tolist() == [0, 0, 2, 3, 0, 1, 0, 3, 0, 0, 0, 0]
    assert rest[48:84].view(np.int32).tolist() == [1, 2, 3, 0, 4, 5, 6, 7, 8]
    assert len(chunks) == 104
    assert index.view(np.uint64).tolist() == [8, 0]
    layout = page.layout.mini_block_layout
    assert list(layout.layers) == [3, 6]
    assert (layout.num_items, layout.num_buffers) == (9, 1)
    assert layout.has_large_chunk
    assert page.num_rows == 8


def test_chunks_of_2_1_have_narrow_words() -> None:
    page = page_of(pa.array(EXAMPLE, LISTS), V2_1)
    words, chunks, _ = page.buffers
    assert words.tobytes() == struct.pack("<H", 0xB0)  # the header is shorter
    assert chunks[:8].tobytes() == struct.pack("<HHHH", 12, 24, 24, 36)
    assert not page.layout.mini_block_layout.has_large_chunk


def test_the_repetition_index_counts_rows_that_end_and_levels_behind_them() -> None:
    lengths = [20_000, 1, 0, 5_000]
    repetition = np.concatenate([np.eye(1, max(size, 1), dtype=np.uint16)[0] for size in lengths])
    entries = np.delete(np.arange(len(repetition)), 20_001)  # of the empty list
    starts = entries[1024::1024] - 1
    bounds = np.concatenate(([0], starts + 1, [len(repetition)]))
    index = repetition_index(repetition, 1, bounds).tolist()
    assert index == [[0, 1024]] * 19 + [[3, 479]] + [[0, 1024]] * 4 + [[1, 0]]


def test_all_chunks_but_the_last_say_the_logarithm_of_their_values() -> None:
    random = np.random.default_rng(1).integers(-(2**62), 2**62, 1300)
    words = page_of(pa.array(random)).buffers[0].view(np.uint32)
    assert (words & 0xF).tolist() == [9, 9, 0]


def test_vectors_without_nulls_are_written_as_they_lie() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(256.0)), 128)
    (data,) = page_of(vectors).buffers
    assert data.__array_interface__["data"][0] == vectors.values.buffers()[1].address


def test_zipped_strings_have_a_control_byte_and_a_length() -> None:
    values = ["a" * 300, None, "b" * 301, ""]
    full = {"lance-encoding:structural-encoding": "fullzip", "lance-encoding:compression": "none"}
    page = page_of(pa.array(values), metadata=full)
    entries, index = page.buffers
    length = struct.Struct("<BI")
    expected = [
        length.pack(0, 300) + b"a" * 300,
        b"\1",
        length.pack(0, 301) + b"b" * 301,
        length.pack(0, 0),
    ]
    assert entries.tobytes() == b"".join(expected)
    assert index.view(np.uint16).tolist() == [0, 305, 306, 612, 617]
    layout = page.layout.full_zip_layout
    assert (layout.bits_rep, layout.bits_def, layout.bits_per_offset) == (0, 1, 32)
    assert (layout.num_items, layout.num_visible_items) == (4, 4)


def test_zipped_lists_have_no_value_where_they_are_empty() -> None:
    vectors = pa.array([[[1.0] * 64], [], [[2.0] * 64, None]], pa.list_(pa.list_(pa.float32(), 64)))
    page = page_of(vectors)
    entries, index = page.buffers
    layout = page.layout.full_zip_layout
    assert (layout.bits_rep, layout.bits_def, layout.bits_per_value) == (1, 2, 64 * 32)
    assert (layout.num_items, layout.num_visible_items) == (4, 3)
    assert entries[[0, 257, 258, 515]].tolist() == [4, 6, 4, 1]
    assert index.view(np.uint16).tolist() == [0, 257, 258, 772]


def test_equal_strings_are_one_scalar() -> None:
    page = page_of(pa.array(["same value"] * 100))
    expected = "02000000080000000a000000000000000a00000073616d652076616c7565"
    assert [buffer.tobytes().hex() for buffer in page.buffers] == [expected]


@pytest.mark.parametrize(
    ("array", "value"),
    [
        (pa.array([7] * 9, pa.int32()), b"\7\0\0\0"),
        (pa.array([True] * 9), b"\1"),
        (pa.array([b"0123456789abcdef"] * 9, pa.binary(16)), b"0123456789abcdef"),
    ],
)
def test_equal_numbers_stand_in_the_message(array: pa.Array, value: bytes) -> None:
    page = page_of(array)
    assert page.buffers == ()
    assert page.layout.constant_layout.inline_value == value


def test_wide_equal_values_are_a_scalar_of_one_buffer() -> None:
    page = page_of(pa.array([b"x" * 40] * 9, pa.binary(40)))
    assert page.buffers[0].tobytes() == struct.pack("<II", 1, 40) + b"x" * 40


def test_a_single_large_string_is_compressed_instead() -> None:
    page = page_of(pa.array(["many words " * 100_000]))
    assert page.layout.WhichOneof("layout") == "full_zip_layout"
    assert page.num_bytes < 1000


def test_a_single_large_string_is_encoded_in_twice_its_memory() -> None:
    size = 8 << 20
    value = pa.array([np.random.default_rng(0).bytes(size)], pa.large_binary())
    tracemalloc.start()
    try:
        page = page_of(value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page.num_bytes > size
    assert peak < 2.3 * size


def test_2_1_has_no_pages_of_one_value() -> None:
    page = page_of(pa.array([7] * 9, pa.int32()), V2_1)
    assert page.layout.WhichOneof("layout") == "mini_block_layout"


def test_nulls_without_anything_around_need_no_bytes() -> None:
    page = page_of(pa.nulls(1000, pa.string()))
    assert page.buffers == ()
    assert list(page.layout.constant_layout.layers) == [3]


def test_nulls_inside_structs_keep_their_levels() -> None:
    kind = pa.struct([("a", pa.int8())])
    page = page_of(pa.array([None, {"a": None}], kind), V2_1)
    assert [buffer.tobytes() for buffer in page.buffers] == [b"", b"\2\0\1\0"]


def test_null_lists_become_runs_of_levels() -> None:
    page = page_of(pa.nulls(100, LISTS))
    repetition, definition = page.buffers
    assert repetition.tobytes() == struct.pack("<QHB", 2, 1, 100)
    assert definition.tobytes() == repetition.tobytes()
    layout = page.layout.constant_layout
    assert (layout.num_rep_values, layout.num_def_values) == (100, 100)


def sparse(num_rows: int) -> pa.Array:
    """Return empty lists but for the first, the middle and the last one."""
    lengths = np.zeros(num_rows, np.int32)
    lengths[[0, num_rows // 2, num_rows - 1]] = 1
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array([1, 2, 3], pa.int32()))


@pytest.mark.parametrize("version", [V2_1, V2_2])
def test_rows_are_split_where_no_chunk_holds_the_empty_lists(version: FileVersion) -> None:
    pages = pages_of(sparse(300_000), version)
    assert sum(page.num_rows for page in pages) == 300_000
    assert max(page.num_rows for page in pages) == 65_535


def test_few_empty_lists_stay_on_one_page() -> None:
    assert len(pages_of(sparse(60_000))) == 1


@pytest.mark.parametrize("kind", [pa.int32(), pa.string(), pa.bool_()])
def test_a_row_of_too_many_empty_lists_is_zipped(kind: pa.DataType) -> None:
    one = pa.array([1, 2, 3], pa.int32()).cast(kind)
    inner = pa.ListArray.from_arrays(sparse(300_000).offsets, one)
    page = page_of(pa.ListArray.from_arrays(pa.array([0, 300_000], pa.int32()), inner))
    assert page.layout.WhichOneof("layout") == "full_zip_layout"


def test_a_row_of_too_many_empty_lists_of_dictionaries_is_refused() -> None:
    one = pa.array(["a", "b", "c"]).dictionary_encode()
    inner = pa.ListArray.from_arrays(sparse(300_000).offsets, one)
    array = pa.ListArray.from_arrays(pa.array([0, 300_000], pa.int32()), inner)
    with pytest.raises(UnsupportedFeatureError, match="decode dictionaries"):
        page_of(array)


def test_a_hint_that_does_not_exist_is_refused() -> None:
    hint = {"lance-encoding:structural-encoding": "sideways"}
    with pytest.raises(InvalidRequestError, match="structural-encoding of column 'c'"):
        page_of(pa.array([1, 2]), metadata=hint)
