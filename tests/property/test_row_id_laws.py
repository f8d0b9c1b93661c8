from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lance_core.errors import CorruptFileError
from lance_core.proto import row_ids_pb2
from lance_core.table.row_ids import RowIds, decode_row_ids, encode_row_ids
from lance_core.table.row_versions import decode_row_versions, encode_row_versions

PATH = "_versions/1.manifest"
ids = st.integers(0, 200) | st.integers(0, 2**20) | st.integers(0, 2**64 - 1)
sequences = st.lists(ids, unique=True, max_size=60)
runs = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 40)), max_size=6)


def values_of(row_ids: RowIds) -> list[int]:
    values: list[int] = row_ids.at(np.arange(len(row_ids))).tolist()
    return values


@given(sequences | st.builds(sorted, sequences))
def test_row_ids_come_back_in_their_order(row_ids: list[int]) -> None:
    data = encode_row_ids(np.array(row_ids, np.uint64))
    assert values_of(decode_row_ids(data, PATH)) == row_ids


@given(runs)
def test_parts_that_each_ascend_come_back(parts: list[tuple[int, int]]) -> None:
    row_ids = [start + i for start, length in parts for i in range(length)]
    data = encode_row_ids(np.array(row_ids, np.uint64))
    assert values_of(decode_row_ids(data, PATH)) == row_ids


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(0, 2**63))
def test_every_kind_of_segment_of_ascending_ids_comes_back(numbers: set[int], base: int) -> None:
    row_ids = [base + number for number in sorted(numbers)]
    data = encode_row_ids(np.array(row_ids, np.uint64))
    assert len(row_ids_pb2.RowIdSequence.FromString(data).segments) == 1
    assert values_of(decode_row_ids(data, PATH)) == row_ids


@given(sequences, st.data())
def test_rows_that_are_cut_out_leave_the_ids_of_the_others(
    row_ids: list[int], data: st.DataObject
) -> None:
    count = len(row_ids)
    gone = data.draw(st.sets(st.integers(0, count - 1) if count > 0 else st.nothing()))
    held = RowIds.of_values(np.array(row_ids, np.uint64))
    (firsts, lengths), offsets = held.without(np.array(sorted(gone), np.int64))
    found = {
        offset + i: first + i
        for first, length, offset in zip(
            firsts.tolist(), lengths.tolist(), offsets.tolist(), strict=True
        )
        for i in range(length)
    }
    assert found == {i: each for i, each in enumerate(row_ids) if i not in gone}


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(1, 3), max_size=40))
def test_versions_come_back(versions: list[int]) -> None:
    found = decode_row_versions(encode_row_versions(np.array(versions, np.uint64)), PATH)
    assert found.at(np.arange(len(found))).tolist() == versions


@given(st.binary(max_size=80))
def test_bytes_of_any_kind_are_row_ids_or_corrupt(data: bytes) -> None:
    for decode in (decode_row_ids, decode_row_versions):
        try:
            decode(data, PATH)
        except CorruptFileError as error:
            assert error.path == PATH  # noqa: PT017 - either outcome is right


@given(st.data())
def test_segments_that_contradict_themselves_are_corrupt(data: st.DataObject) -> None:
    segment = row_ids_pb2.U64Segment
    array = row_ids_pb2.EncodedU64Array
    u16 = array.U16Array
    u64 = array.U64Array
    broken = data.draw(
        st.sampled_from(
            [
                segment(),
                segment(range=segment.Range(start=5, end=4)),
                segment(range=segment.Range(start=0, end=2**64 - 1)),
                segment(range_with_bitmap=segment.RangeWithBitmap(end=9, bitmap=b"\1")),
                segment(
                    range_with_holes=segment.RangeWithHoles(
                        end=2, holes=array(u64_array=u64(values=bytes(8) + b"\xff" * 8))
                    )
                ),
                segment(sorted_array=array(u16_array=u16(base=1, offsets=b"\1\0\1\0"))),
                segment(array=array(u16_array=u16(base=2**64 - 1, offsets=b"\1\0"))),
                segment(array=array(u64_array=u64(values=bytes(9)))),
            ]
        )
    )
    sequence = row_ids_pb2.RowIdSequence(segments=[broken])
    with pytest.raises(CorruptFileError):
        decode_row_ids(sequence.SerializeToString(), PATH)


def test_the_published_example_reads_its_bits_lowest_first() -> None:
    bitmap = b"\xf7\xfb\xfd\x7e\xbf"
    segment = row_ids_pb2.U64Segment(
        range_with_bitmap=row_ids_pb2.U64Segment.RangeWithBitmap(start=350, end=390, bitmap=bitmap)
    )
    data = row_ids_pb2.RowIdSequence(segments=[segment]).SerializeToString()
    assert values_of(decode_row_ids(data, PATH)) == [i for i in range(350, 390) if i % 7 != 3]
