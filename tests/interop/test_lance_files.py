"""Whatever pylance writes reads back equal: whole, by ranges and by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.errors import UnsupportedFeatureError
from lance_core.file.reader import LanceFileReader
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from tests.lance_columns import (
    VERSIONS,
    lance_file,
    lance_table,
    not_written,
    open_bytes,
    sample_columns,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


def plain(array: pa.Array) -> pa.Array:
    """Return the values of a dictionary array: how pages split dictionaries does not matter."""
    if pa.types.is_dictionary(array.type):
        return array.cast(array.type.value_type)
    return array


def assert_equal(found: pa.Array, wanted: pa.Array) -> None:
    found.validate(full=True)
    assert found.type == wanted.type
    assert plain(found).equals(plain(wanted))


def assert_reads_equal(reader: LanceFileReader, wanted: pa.Array) -> None:
    rng = np.random.default_rng(len(wanted))
    targets = [reader.target("c")]
    num_rows = len(wanted)
    assert_equal(reader.read(targets, [(0, num_rows)])[0], wanted)
    if num_rows == 0:
        return
    for _ in range(2):  # the second time page states are loaded
        starts = rng.integers(0, num_rows, 12)
        stops = np.minimum(starts + rng.integers(0, 900, 12), num_rows)
        ranges = list(zip(starts.tolist(), stops.tolist(), strict=True))
        parts = [wanted.slice(start, stop - start) for start, stop in ranges]
        assert_equal(reader.read(targets, ranges)[0], pa.concat_arrays(parts))
        rows = rng.integers(0, num_rows, 30)
        assert_equal(reader.take(targets, rows)[0], wanted.take(pa.array(rows)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sample_columns())
def test_a_column_reads_back_equal(name: str, version: str, tmp_path: Path) -> None:
    if not_written(name, version):
        pytest.skip("pylance does not write it")
    column, metadata = sample_columns()[name]
    data = lance_file(column, version, metadata)
    (tmp_path / "file.lance").write_bytes(data)
    wanted = column
    if version == "2.0" and pa.types.is_map(column.type):
        wanted = column.cast(pa.list_(column.type.value_field))
    assert_reads_equal(open_bytes(data), wanted)
    mapped = RangeScheduler(MappedStore(tmp_path))
    assert_reads_equal(LanceFileReader.open(mapped, "file.lance"), wanted)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sample_columns())
def test_a_column_of_many_pages_reads_back_equal(name: str, version: str, tmp_path: Path) -> None:
    if not_written(name, version):
        pytest.skip("pylance does not write it")
    column, metadata = sample_columns()[name]
    column = column.slice(0, 900)
    data = lance_file(column, version, metadata, page_rows=137)
    (tmp_path / "file.lance").write_bytes(data)
    assert_reads_equal(open_bytes(data), column)
    mapped = RangeScheduler(MappedStore(tmp_path))
    assert_reads_equal(LanceFileReader.open(mapped, "file.lance"), column)


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_of_one_column_may_be_encoded_differently(version: str) -> None:
    rng = np.random.default_rng(7)
    parts = [
        pa.array(rng.integers(0, 2**62, 700_000)),
        pa.array(np.arange(400_000)),
        pa.array([3] * 900_000),
        pa.array([None, 5] * 300_000, pa.int64()),
    ]
    column = pa.chunked_array(parts)
    reader = open_bytes(lance_table(pa.table({"c": column}), version))
    rows = rng.integers(0, len(column), 200)
    ranges = [(699_990, 700_020), (0, 5), (1_999_000, 2_000_100), (1_099_999, 1_100_001)]
    wanted = pa.concat_arrays(
        [part for start, stop in ranges for part in column.slice(start, stop - start).chunks]
    )
    assert_equal(reader.read([reader.target("c")], ranges)[0], wanted)
    assert_equal(
        reader.take([reader.target("c")], rows)[0], column.take(pa.array(rows)).combine_chunks()
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_many_pages_of_strings_and_lists_read_back_equal(version: str) -> None:
    texts = pa.array([f"some longer text {i}" * 6 for i in range(60_000)])
    lists = pa.array([list(range(i % 40)) for i in range(60_000)])
    few = pa.array([f"{i % 9}" for i in range(60_000)])
    table = pa.table({"a": texts, "b": lists, "c": few, "d": few.dictionary_encode()})
    reader = open_bytes(lance_table(table, version, page_rows=5_000))
    targets = [reader.target(name) for name in table.column_names]
    rows = np.random.default_rng(1).integers(0, 60_000, 100)
    for found, wanted in zip(reader.take(targets, rows), table.columns, strict=True):
        assert_equal(found, wanted.combine_chunks().take(pa.array(rows)))
    for found, wanted in zip(reader.read(targets, [(100, 59_900)]), table.columns, strict=True):
        assert_equal(found, wanted.combine_chunks().slice(100, 59_800))


elements = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))).map(
        lambda values: pa.array(values, pa.int64())
    ),
    st.lists(st.one_of(st.none(), st.integers(0, 2**16 - 1))).map(
        lambda values: pa.array(values, pa.uint16())
    ),
    st.lists(st.one_of(st.none(), st.floats(width=32))).map(
        lambda values: pa.array(values, pa.float32())
    ),
    st.lists(st.one_of(st.none(), st.booleans())).map(lambda values: pa.array(values, pa.bool_())),
    st.lists(st.one_of(st.none(), st.text())).map(lambda values: pa.array(values, pa.string())),
    st.lists(st.one_of(st.none(), st.binary(max_size=400))).map(
        lambda values: pa.array(values, pa.large_binary())
    ),
    st.lists(
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=4))
    ).map(lambda values: pa.array(values, pa.list_(pa.int16()))),
)


@settings(max_examples=60)
@given(column=elements, repeat=st.integers(1, 200), version=st.sampled_from(VERSIONS))
def test_random_columns_read_back_equal(column: pa.Array, repeat: int, version: str) -> None:
    repeated = pa.concat_arrays([column] * repeat)
    reader = open_bytes(lance_file(repeated, version))
    (found,) = reader.read([reader.target("c")], [(0, len(repeated))])
    found.validate(full=True)
    # text keeps NaN equal to NaN
    assert str(found.to_pylist()) == str(repeated.to_pylist())
    if len(repeated) > 0:
        rows = np.random.default_rng(repeat).integers(0, len(repeated), 20)
        (taken,) = reader.take([reader.target("c")], rows)
        assert str(taken.to_pylist()) == str(repeated.take(pa.array(rows)).to_pylist())


def test_a_legacy_file_is_refused_with_advice() -> None:
    data = lance_file(pa.array([1]), "2.2")
    legacy = data[:-8] + b"\x00\x00\x02\x00LANC"
    with pytest.raises(UnsupportedFeatureError, match="legacy"):
        open_bytes(legacy)


def test_a_2_3_file_is_refused() -> None:
    data = lance_file(pa.array([1]), "2.2")
    with pytest.raises(UnsupportedFeatureError, match=r"2\.3"):
        open_bytes(data[:-8] + b"\x02\x00\x03\x00LANC")
