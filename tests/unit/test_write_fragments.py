"""Streams of rows as fragments: sizes, descriptions, and nothing left of what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.io.memory_store import MemoryStore
from lance_core.operations.write_fragments import FragmentOptions, write_fragments
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.table.naming import data_file_path
from tests.written_files import read_back

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lance_core.proto import table_pb2

TABLE = pa.table({"id": range(10), "name": [str(i) for i in range(10)]})
SCHEMA = schema_from_arrow(TABLE.schema)


def written(
    batches: Iterable[pa.RecordBatch], **options: int | str
) -> tuple[MemoryStore, list[table_pb2.DataFragment]]:
    store = MemoryStore()
    return store, write_fragments(store, SCHEMA, batches, FragmentOptions(**options))  # type: ignore[arg-type]  # sizes or a version


def objects(store: MemoryStore) -> list[str]:
    return [meta.path for meta in store.list_tree("")]


@pytest.mark.parametrize("batch_rows", [1, 3, 4, 10])
def test_fragments_are_full_whatever_the_batches_are(batch_rows: int) -> None:
    store, fragments = written(TABLE.to_batches(batch_rows), max_rows_per_file=4)
    assert [each.physical_rows for each in fragments] == [4, 4, 2]
    tables = [read_back(store, data_file_path(each.files[0].path)) for each in fragments]
    assert pa.concat_tables(tables).to_pydict() == TABLE.to_pydict()


def test_a_fragment_takes_no_batch_after_its_bytes() -> None:
    size = TABLE.to_batches(2)[0].nbytes
    _, fragments = written(TABLE.to_batches(2), max_bytes_per_file=size + 1)
    assert [each.physical_rows for each in fragments] == [4, 4, 2]


@pytest.mark.parametrize("batches", [[], [pa.RecordBatch.from_pylist([], TABLE.schema)]])
def test_no_rows_make_no_fragment(batches: list[pa.RecordBatch]) -> None:
    store, fragments = written(batches)
    assert (objects(store), fragments) == ([], [])


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_fragment_says_what_its_file_holds(version: str) -> None:
    store, (fragment,) = written(TABLE.to_batches(), file_version=version)
    (file,) = fragment.files
    assert objects(store) == [data_file_path(file.path)]
    assert file.file_size_bytes == store.head(data_file_path(file.path)).size
    assert f"{file.file_major_version}.{file.file_minor_version}" == version
    assert (list(file.fields), list(file.column_indices)) == ([0, 1], [0, 1])
    assert not file.HasField("base_id")
    assert not fragment.HasField("deletion_file")


def failing_after(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise RuntimeError("the source broke")


def test_a_source_that_breaks_leaves_no_file() -> None:
    store = MemoryStore()
    batches = failing_after(TABLE.to_batches(3))
    with pytest.raises(RuntimeError, match="the source broke"):
        write_fragments(store, SCHEMA, batches, FragmentOptions(max_rows_per_file=4))
    assert objects(store) == []


def test_a_wrong_batch_leaves_no_file_and_no_blob() -> None:
    blob = pa.field("b", pa.large_binary(), False, {"lance-encoding:blob": "true"})
    schema = pa.schema([blob])
    large = pa.record_batch([pa.array([bytes(5 << 20)], pa.large_binary())], schema=schema)
    null = pa.record_batch([pa.array([None], pa.large_binary())], schema=schema)
    store = MemoryStore()
    with pytest.raises(InvalidRequestError, match="holds nulls"):
        write_fragments(store, schema_from_arrow(schema), [large, null])
    assert objects(store) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rows_per_file": 0}, "max_rows_per_file is 0"),
        ({"max_rows_per_file": 2**32 + 1}, "it may be 1 to 4294967296"),
        ({"max_bytes_per_file": 0}, "max_bytes_per_file is 0"),
        ({"file_version": "3.0"}, "none of 2.0, 2.1, 2.2"),
    ],
)
def test_options_that_cannot_be_met_are_refused(
    options: dict[str, int | str], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        written([], **options)
