"""What a caller gets wrong is a LanceError that says what would work, whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError, StoreError
from lance_core.file import LanceFileReader, LanceFileWriter
from lance_core.io.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}, metadata={"k": "v"})
SURROGATE = "\ud800"


def written(path: Path, table: pa.Table) -> LanceFileReader:
    with LanceFileWriter.open_path(path, table.schema) as writer:
        writer.write_batch(table)
    return LanceFileReader.open_path(path)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LanceFileReader:
    return written(tmp_path_factory.mktemp("files") / "a.lance", TABLE)


WRONG_READS: dict[str, Callable[..., object]] = {
    "a text for a list of columns": lambda r: r.scan("ab"),
    "a number for a list of columns": lambda r: r.scan(3),
    "a number for a column": lambda r: r.scan([0]),
    "None for a column": lambda r: r.read([None], [(0, 1)]),
    "None for columns": lambda r: r.take(None, [0]),
    "an unknown column": lambda r: r.take(["c"], [0]),
    "a number for a name": lambda r: r.target(0),
    "None for a name": lambda r: r.target(None),
    "an empty name": lambda r: r.target(""),
    "a name of half a surrogate pair": lambda r: r.target(SURROGATE),
    "an unknown way with blobs": lambda r: r.target("a", blob_handling=[]),
    "no range": lambda r: r.read(["a"], None),
    "numbers for ranges": lambda r: r.scan(["a"], [0, 1]),
    "one range for ranges": lambda r: r.scan(["a"], (0, 1)),
    "ranges with steps": lambda r: r.scan(["a"], [(0, 1, 2)]),
    "a text for a range": lambda r: r.scan(["a"], ["ab"]),
    "fractions for a range": lambda r: r.scan(["a"], [(0.0, 1.0)]),
    "a range backwards": lambda r: r.read(["a"], [(2, 1)]),
    "a range beyond the end": lambda r: r.byte_ranges(["a"], [(0, 4)]),
    "a range below zero": lambda r: r.read(["a"], [(-1, 1)]),
    "texts for rows": lambda r: r.take(["a"], ["0"]),
    "no rows": lambda r: r.take(["a"], None),
    "one row": lambda r: r.take(["a"], 0),
    "fractions for rows": lambda r: r.take(["a"], [0.5]),
    "truth for rows": lambda r: r.take_table([True]),
    "rows in rows": lambda r: r.take(["a"], [[1], [1, 2]]),
    "rows beyond any number": lambda r: r.take(["a"], [2**70]),
    "rows beyond the end": lambda r: r.take(["a"], [3]),
    "rows below zero": lambda r: r.take(["a"], [-1]),
    "a null for a row": lambda r: r.take(["a"], pa.array([0, None])),
    "a text for a size": lambda r: r.scan(batch_rows="8"),
    "a fraction for a size": lambda r: r.scan(batch_rows=1.5),
    "truth for a size": lambda r: r.scan(batch_bytes=True),
    "None for a size": lambda r: r.scan(batch_bytes=None),
    "no row in a batch": lambda r: r.scan(batch_rows=0),
    "a size beyond any number": lambda r: r.scan(batch_rows=2**80),
    "less than no work ahead": lambda r: r.scan(read_ahead=-1),
    "a buffer that is not there": lambda r: r.global_buffer(7),
    "a buffer below zero": lambda r: r.global_buffer(-1),
    "a text for a buffer": lambda r: r.global_buffer("0"),
    "a text for a column's number": lambda r: r.fixed_width_pages("a"),
    "a column that is not there": lambda r: r.fixed_width_pages(99),
    "a column before the first": lambda r: r.fixed_width_pages(-1),
    "a number for columns to estimate": lambda r: r.stored_bytes([0]),
    "a fraction for a buffer": lambda r: r.global_buffer(0.0),
}

open_file: Callable[..., object] = LanceFileReader.open_path
open_with: Callable[..., object] = LanceFileReader.open
write_file: Callable[..., object] = LanceFileWriter.open_path
write_to: Callable[..., object] = LanceFileWriter

WRONG_OPENS: dict[str, Callable[..., object]] = {
    "a path of bytes": lambda p: open_file(bytes(p)),
    "a number for a path": lambda _: open_file(3),
    "None for a path": lambda _: open_file(None),
    "half a surrogate pair in a path": lambda p: open_file(p / SURROGATE),
    "a home of nobody": lambda _: open_file("~no-such-user/a.lance"),
    "a list of options": lambda p: open_file(p, ["a"]),
    "numbers for options": lambda p: open_file(p, {"a": 1}),
    "a path for a scheduler": lambda p: open_with(str(p), "a"),
    "a path of bytes to write": lambda p: write_file(bytes(p), TABLE.schema),
    "no path to write": lambda _: write_file(None, TABLE.schema),
    "a dict for a schema": lambda p: write_file(p, {}),
    "fields for a schema": lambda p: write_file(p, list(TABLE.schema)),
    "a table for a schema": lambda p: write_file(p, TABLE),
    "no schema": lambda p: write_file(p, None),
    "a number for a version": lambda p: write_file(p, TABLE.schema, version=2.2),
    "a path for a store": lambda p: write_to(str(p), "a", TABLE.schema),
    "a number for a name": lambda _: write_to(MemoryStore(), 5, TABLE.schema),
    "pages of no bytes": lambda _: write_to(MemoryStore(), "a", TABLE.schema, max_page_bytes=0),
    "a fraction of room": lambda _: write_to(
        MemoryStore(),
        "a",
        TABLE.schema,
        max_buffered_bytes=1.5,
    ),
}

WRONG_WRITES: dict[str, Callable[..., object]] = {
    "a dict of rows": lambda w: w.write_batch({"a": [1]}),
    "no rows": lambda w: w.write_batch(None),
    "a list of tables": lambda w: w.write_batch([TABLE]),
    "an array": lambda w: w.write_batch(TABLE["a"]),
    "a reader": lambda w: w.write_batch(TABLE.to_reader()),
    "two columns of one name": lambda w: w.write_batch(pa.table([[1], [2]], names=["a", "a"])),
    "a text for a buffer": lambda w: w.add_global_buffer("x"),
    "no buffer": lambda w: w.add_global_buffer(None),
    "a number for a buffer": lambda w: w.add_global_buffer(5),
    "every second byte": lambda w: w.add_global_buffer(np.arange(8)[::2]),
    "objects for a buffer": lambda w: w.add_global_buffer(np.array([object()])),
    "a number for metadata": lambda w: w.add_schema_metadata("k", 1),
    "bytes for metadata": lambda w: w.add_schema_metadata(b"k", b"v"),
    "half a surrogate pair in metadata": lambda w: w.add_schema_metadata("k", SURROGATE),
    "no key": lambda w: w.add_schema_metadata(None, "v"),
}


@pytest.mark.parametrize("what", WRONG_READS)
def test_a_wrong_argument_of_a_read_is_refused(what: str, reader: LanceFileReader) -> None:
    with pytest.raises(InvalidRequestError):
        WRONG_READS[what](reader)


@pytest.mark.parametrize("what", WRONG_OPENS)
def test_a_wrong_argument_of_opening_is_refused(what: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError):
        WRONG_OPENS[what](tmp_path / "a.lance")


@pytest.mark.parametrize("what", WRONG_WRITES)
def test_a_wrong_argument_of_a_write_is_refused_and_the_file_goes_on(
    what: str, tmp_path: Path
) -> None:
    with LanceFileWriter.open_path(tmp_path / "a.lance", TABLE.schema) as writer:
        with pytest.raises(InvalidRequestError):
            WRONG_WRITES[what](writer)
        writer.write_batch(TABLE)
    assert LanceFileReader.open_path(tmp_path / "a.lance").read_all().equals(TABLE)


def test_a_target_of_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    first = written(tmp_path / "a.lance", TABLE)
    turned = written(tmp_path / "b.lance", TABLE.select(["b", "a"]))
    for act in (first.read, first.byte_ranges):
        with pytest.raises(InvalidRequestError, match="made for another file"):
            act([turned.target("a")], [(0, 1)])
    with pytest.raises(InvalidRequestError, match="made for another file"):
        first.take([turned.target("a")], [0])
    with pytest.raises(InvalidRequestError, match="made for another file"):
        first.scan([turned.target("a")])


def test_a_target_of_a_file_with_the_same_columns_is_read(tmp_path: Path) -> None:
    first = written(tmp_path / "a.lance", TABLE)
    second = written(tmp_path / "b.lance", TABLE.slice(1))
    assert second.read([first.target("a")], [(0, 2)])[0].to_pylist() == [2, 3]


@pytest.mark.parametrize("place", ["folder", "file/a.lance", "x" * 300, "/proc/no-such/a.lance"])
def test_a_place_that_cannot_be_written_is_named(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match="cannot write"),
        LanceFileWriter.open_path(tmp_path / place, TABLE.schema) as writer,
    ):
        writer.write_batch(TABLE)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "folder").is_dir()


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "device").symlink_to("/dev/null")  # as good as one, and harmless to replace
    with (
        pytest.raises(StoreError, match="a folder or device is there"),
        LanceFileWriter.open_path(tmp_path / "device", TABLE.schema) as writer,
    ):
        writer.write_batch(TABLE)
    assert (tmp_path / "device").is_symlink()


def test_a_path_may_begin_with_the_home_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    written(Path("~/a.lance"), TABLE)
    assert len(LanceFileReader.open_path("~/a.lance")) == 3
    assert (tmp_path / "a.lance").is_file()


def test_rows_are_read_by_the_names_of_columns(reader: LanceFileReader) -> None:
    assert reader.read(["b"], [(1, 3)])[0].to_pylist() == ["y", None]
    assert reader.take(["a"], [2, 0])[0].to_pylist() == [3, 1]
    assert reader.take_table([2, 0]).equals(TABLE.take([2, 0]))
    assert reader.take_table([1, 1], []).num_rows == 2
    assert reader.read_all(["b"]).equals(TABLE.select(["b"]))
    assert reader.stored_bytes(["a", "b"])(0, 3) > reader.stored_bytes(["a"])(0, 3)


def test_a_reader_says_what_it_reads(reader: LanceFileReader) -> None:
    assert repr(reader) == "<LanceFileReader a.lance: 3 rows of a, b; format 2.2>"
    with reader as same:
        assert len(same) == 3
    assert reader.scan(["a"]).schema.metadata == {b"k": b"v"}
    assert reader.read_all().schema.equals(TABLE.schema, check_metadata=True)


def test_extension_types_that_pyarrow_knows_have_their_type(tmp_path: Path) -> None:
    uuids = pa.array([b"0" * 16, None], pa.uuid())
    bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8()))
    tensor = pa.fixed_shape_tensor(pa.float32(), [2])
    tensors = pa.array([[1, 2], None], pa.list_(pa.float32(), 2))
    nested = pa.StructArray.from_arrays([uuids], ["u"])
    table = pa.table(
        {"u": uuids, "b": bools, "t": pa.ExtensionArray.from_storage(tensor, tensors), "s": nested}
    )
    reader = written(tmp_path / "a.lance", table)
    assert reader.read_all().equals(table)
    assert reader.take_table([1, 0]).schema == table.schema


def test_a_name_of_an_extension_that_contradicts_the_type_is_left_as_it_is(tmp_path: Path) -> None:
    field = pa.field("u", pa.int64(), metadata={"ARROW:extension:name": "arrow.uuid"})
    batch = pa.record_batch([pa.array([1])], schema=pa.schema([field]))
    with LanceFileWriter.open_path(tmp_path / "a.lance", batch.schema) as writer:
        writer.write_batch(batch)
    assert LanceFileReader.open_path(tmp_path / "a.lance").read_all().schema.field(0).equals(field)
