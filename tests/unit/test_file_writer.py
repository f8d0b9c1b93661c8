"""The life of a file being written, in memory and read back by our own reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.ids import FieldId
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.schema.field import LanceField
from lance_core.schema.tree import LanceSchema

if TYPE_CHECKING:
    from pathlib import Path

PATH = "file.lance"
VERSIONS = list(FileVersion)
TABLE = pa.table(
    {
        "id": pa.array(range(1000), pa.int32()),
        "name": pa.array([None if i % 5 == 0 else f"name {i}" for i in range(1000)]),
        "tags": pa.array([list(range(i % 4)) if i % 7 else None for i in range(1000)]),
    }
)


def writer_of(
    store: MemoryStore, schema: pa.Schema | LanceSchema = TABLE.schema, **options: object
) -> LanceFileWriter:
    return LanceFileWriter(store, PATH, schema, **options)  # type: ignore[arg-type]  # passed on


def opened(store: MemoryStore) -> LanceFileReader:
    return LanceFileReader.open(RangeScheduler(store), PATH)


def read(store: MemoryStore) -> pa.Table:
    reader = opened(store)
    names = reader.schema.names
    columns = reader.read([reader.target(name) for name in names], [(0, reader.num_rows)])
    return pa.table(dict(zip(names, columns, strict=True)))


def content(store: MemoryStore) -> bytes:
    return bytes(store.get_range(PATH, 0, store.head(PATH).size))


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_written_is_read(version: FileVersion) -> None:
    store = MemoryStore()
    with writer_of(store, version=version) as writer:
        writer.write_batch(TABLE)
    assert opened(store).version is version
    assert read(store).equals(TABLE)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_many_batches_fill_many_pages(version: FileVersion) -> None:
    store = MemoryStore()
    with writer_of(store, version=version, max_page_bytes=4096) as writer:
        for batch in TABLE.to_batches(max_chunksize=33):
            writer.write_batch(batch)
        for batch in TABLE.to_batches(max_chunksize=33):
            writer.write_batch(batch.select(["tags", "id", "name"]))
    assert read(store).equals(pa.concat_tables([TABLE, TABLE]).combine_chunks())


def test_many_columns_share_the_memory_of_waiting_rows() -> None:
    def file_of(max_buffered_bytes: int) -> int:
        store = MemoryStore()
        with writer_of(store, max_buffered_bytes=max_buffered_bytes) as writer:
            for batch in pa.concat_tables([TABLE] * 40).to_batches(max_chunksize=1000):
                writer.write_batch(batch)
        return store.head(PATH).size

    assert file_of(16 << 10) > file_of(1 << 20)


def test_the_same_batches_give_the_same_bytes() -> None:
    files = []
    for _ in range(2):
        store = MemoryStore()
        with writer_of(store, max_page_bytes=4096) as writer:
            for batch in TABLE.to_batches(max_chunksize=100):
                writer.write_batch(batch)
        files.append(content(store))
    assert files[0] == files[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_may_have_no_rows_and_no_columns(version: FileVersion) -> None:
    for schema in (TABLE.schema, pa.schema([])):
        store = MemoryStore()
        with writer_of(store, schema, version=version) as writer:
            assert writer.finish().num_rows == 0
        assert opened(store).num_rows == 0
        assert read(store).num_rows == 0


def test_the_result_is_what_a_manifest_needs() -> None:
    store = MemoryStore()
    with writer_of(store) as writer:
        writer.write_batch(TABLE)
        written = writer.finish()
    assert (written.path, written.size) == (PATH, len(content(store)))
    assert (written.num_rows, written.version) == (1000, FileVersion.V2_2)
    assert dict(written.column_indices) == {0: 0, 1: 1, 3: 2}


def test_field_ids_of_a_table_are_kept() -> None:
    fields = tuple(
        LanceField(FieldId(number), name, kind, nullable=True)
        for number, name, kind in ((7, "id", "int32"), (3, "name", "string"))
    )
    store = MemoryStore()
    with writer_of(store, LanceSchema(fields, {"k": "v"})) as writer:
        writer.write_batch(TABLE.select(["id", "name"]))
        assert dict(writer.finish().column_indices) == {7: 0, 3: 1}
    assert opened(store).schema == LanceSchema(fields, {"k": "v"})


def test_buffers_and_metadata_can_be_added_at_any_time() -> None:
    store = MemoryStore()
    with writer_of(store) as writer:
        assert writer.add_global_buffer(b"one") == 1
        writer.write_batch(TABLE)
        assert writer.add_global_buffer(np.arange(4, dtype=np.uint8)) == 2
        writer.add_schema_metadata("k", "v")
    reader = opened(store)
    assert bytes(reader.global_buffer(1)) == b"one"
    assert bytes(reader.global_buffer(2)) == b"\0\1\2\3"
    assert dict(reader.schema.metadata) == {"k": "v"}


def test_an_exception_leaves_no_file() -> None:
    store = MemoryStore()

    def fail() -> None:
        with writer_of(store) as writer:
            writer.write_batch(TABLE)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(ObjectNotFoundError):
        store.head(PATH)


def test_an_aborted_writer_takes_nothing_more() -> None:
    writer = writer_of(MemoryStore())
    writer.abort()
    for use in (
        lambda: writer.write_batch(TABLE),
        writer.finish,
        lambda: writer.add_global_buffer(b""),
    ):
        with pytest.raises(InvalidRequestError, match=PATH):
            use()
    writer.abort()


def test_a_batch_of_other_columns_changes_nothing() -> None:
    store = MemoryStore()
    with writer_of(store) as writer:
        with pytest.raises(InvalidRequestError, match="lacks"):
            writer.write_batch(TABLE.select(["id"]))
        writer.write_batch(TABLE)
    assert read(store).equals(TABLE)


def test_nulls_where_none_are_declared_abort_the_file() -> None:
    schema = pa.schema([pa.field("c", pa.int8(), nullable=False)])
    for version in VERSIONS:
        store = MemoryStore()
        writer = writer_of(store, schema, version=version)
        writer.write_batch(pa.table([pa.array([1, None], pa.int8())], schema=schema))
        with pytest.raises(InvalidRequestError, match=r"'c'.* holds? nulls"):
            writer.finish()
        with pytest.raises(ObjectNotFoundError):
            store.head(PATH)


def test_null_structs_need_a_later_version() -> None:
    array = pa.array([{"x": 1}, None])
    schema = pa.schema({"s": array.type})
    writer = writer_of(MemoryStore(), schema, version=FileVersion.V2_0)
    writer.write_batch(pa.table([array], schema=schema))
    with pytest.raises(UnsupportedFeatureError, match=r"'s'.*2\.1 or later"):
        writer.finish()


def test_a_file_can_be_written_by_its_path_alone(tmp_path: Path) -> None:
    with LanceFileWriter.open_path(tmp_path / "a.lance", TABLE.schema) as writer:
        writer.write_batch(TABLE)
    assert (tmp_path / "a.lance").stat().st_size == writer.finish().size


def test_pages_may_be_made_smaller_by_path_too(tmp_path: Path) -> None:
    for name, options in (("page", {"max_page_bytes": 512}), ("all", {"max_buffered_bytes": 1})):
        path = tmp_path / f"{name}.lance"
        with LanceFileWriter.open_path(path, TABLE.schema, **options) as writer:  # type: ignore[arg-type]  # passed on
            writer.write_batch(TABLE.to_batches()[0])
        reader = LanceFileReader.open_path(path)
        assert len(reader.metadata.column(reader.column_indices()[FieldId(1)]).pages) > 1
        assert reader.read_all().equals(TABLE)


@pytest.mark.parametrize(
    "rows",
    [
        pa.array([{}, None], pa.struct([])),
        pa.array([[{}], []], pa.list_(pa.struct([]))),
        pa.array([{"e": {}}, None], pa.struct({"e": pa.struct([])})),
    ],
    ids=["nulls", "lists", "nulls around"],
)
def test_structs_without_children_are_refused_where_they_would_lose_something(
    rows: pa.Array,
) -> None:
    schema = pa.schema({"c": rows.type})
    for version in (FileVersion.V2_1, FileVersion.V2_2):  # 2.0 keeps the lists
        writer = writer_of(MemoryStore(), schema, version=version)
        writer.write_batch(pa.table([rows], schema=schema))
        with pytest.raises(UnsupportedFeatureError, match="column 'c'"):
            writer.finish()


@pytest.mark.parametrize("version", VERSIONS)
def test_dictionaries_that_outgrow_their_indices_together_are_refused(version: FileVersion) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    nested = pa.struct([("d", kind)])
    with writer_of(MemoryStore(), pa.schema({"s": nested}), version=version) as writer:
        writer.write_batch(pa.table({"s": pa.array([{"d": f"a{i}"} for i in range(100)], nested)}))
        writer.write_batch(pa.table({"s": pa.array([{"d": f"a{i}"} for i in range(128)], nested)}))
        with pytest.raises(InvalidRequestError, match=r"'s'.*more than 128 items.*int32"):
            writer.write_batch(pa.table({"s": pa.array([{"d": "one more"}], nested)}))
        writer.abort()


@pytest.mark.parametrize(
    "array",
    [
        pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
        ),
        pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a"]), safe=False),
    ],
    ids=["text that is not UTF-8", "index outside the dictionary"],
)
def test_unsound_arrays_are_refused(array: pa.Array) -> None:
    with writer_of(MemoryStore(), pa.schema({"x": array.type})) as writer:
        with pytest.raises(InvalidRequestError, match="'x' is no sound array"):
            writer.write_batch(pa.table({"x": array}))
        writer.abort()


def test_a_version_may_be_spelt() -> None:
    store = MemoryStore()
    with writer_of(store, version="2.1") as writer:
        writer.write_batch(TABLE)
    assert opened(store).version is FileVersion.V2_1
    with pytest.raises(InvalidRequestError, match=r"'2.9' is none of 2.0, 2.1, 2.2"):
        writer_of(store, version="2.9")


def test_a_name_with_a_nul_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="NUL"):
        writer_of(MemoryStore(), pa.schema({"a\0b": pa.int32()}))


@pytest.mark.parametrize("rows", [[0.5], ["0"], [True, False], [[0, 1]], [2**63], [-1], [1000]])
def test_rows_to_take_are_whole_numbers_inside_the_file(rows: list[object]) -> None:
    store = MemoryStore()
    with writer_of(store) as writer:
        writer.write_batch(TABLE)
    reader = opened(store)
    with pytest.raises(InvalidRequestError, match="rows"):
        reader.take([reader.target("id")], np.array(rows))


def test_a_large_dictionary_does_not_shrink_what_a_scan_reads_at_once() -> None:
    items = [f"a word that is rather long: {number}" for number in range(300_000)]
    column = pa.array(items).dictionary_encode()
    store = MemoryStore()
    with writer_of(store, pa.schema({"d": column.type})) as writer:
        writer.write_batch(pa.table({"d": column}))
    batches = list(opened(store).scan(batch_rows=8192))
    assert len(batches) < 60
    assert pa.Table.from_batches(batches)["d"].cast(pa.string()).to_pylist() == items


def test_many_columns_are_written_and_scanned_in_few_pieces() -> None:
    table = pa.table({f"c{number}": pa.array(range(1000)) for number in range(600)})
    store = MemoryStore()
    with writer_of(store, table.schema) as writer:
        writer.write_batch(table)
    batches = list(opened(store).scan())
    assert len(batches) == 1
    assert pa.Table.from_batches(batches).equals(table)
