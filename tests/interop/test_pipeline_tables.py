"""What the data source reads and writes, without Spark; pylance writes and reads the other side."""

from __future__ import annotations

import pickle
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql.datasource import GreaterThan, In
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

import lance_core
from lance_core.errors import (
    CommitConflictError,
    InvalidRequestError,
    TypeMismatchError,
    UnknownColumnError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from pipeline.datasource import FragmentPartition, LanceDataSource, LanceReader, LanceWriter
from pipeline.datasource_options import ReadOptions
from pipeline.readable import readable, readable_schema
from pipeline.table_read import plan_read, spark_schema
from pipeline.table_write import plan_write
from tests.lance_cases import children_of
from tests.lance_strategies import lance_cases, lenient
from tests.same_values import assert_same
from tests.spark_columns import COLUMNS, has_nanoseconds
from tests.verified import verified

if TYPE_CHECKING:
    from tests.lance_cases import LanceCase

pytestmark = pytest.mark.interop


def source(path: Path, **options: object) -> LanceDataSource:
    return LanceDataSource({"path": str(path), **{key: str(each) for key, each in options.items()}})


def opened(path: Path, **options: object) -> LanceReader:
    """Return a reader, as Spark makes one in a process of its own."""
    made = source(path, **options)
    return made.reader(made.schema())


def sent(value: Any) -> Any:
    """Return a value as it arrives in another process."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - as Spark sends it


def read(reader: LanceReader) -> pa.Table:
    """Read all partitions, each in a process of its own as far as the reader knows."""
    copy = sent(reader)
    batches = [each for part in copy.partitions() for each in copy.read(part)]
    return pa.Table.from_batches(batches, copy._read.schema)


def spark_rows(table: pa.Table) -> tuple[Any, list[pa.RecordBatch]]:
    """Return a schema of Spark for a table, and its rows as Spark hands them to Python."""
    plain = readable_schema(table.schema)
    schema = from_arrow_schema(plain)
    arrow = to_arrow_schema(schema, timezone="UTC")
    return schema, [readable(batch, arrow) for batch in table.to_batches()]


def write(
    path: Path,
    table: pa.Table,
    *,
    overwrite: bool = False,
    schema: Any = None,
    num_tasks: int = 2,
    **options: Any,
) -> LanceWriter:
    """Write a table as Spark would: planned, written by tasks, committed by three processes."""
    inferred, batches = spark_rows(table)
    writer = source(path, **options).writer(inferred if schema is None else schema, overwrite)
    messages = [
        sent(sent(writer).write(iter(batches[place::num_tasks]))) for place in range(num_tasks)
    ]
    sent(writer).commit(messages)
    return writer


def rows(num_rows: int = 500, first: int = 0) -> pa.Table:
    generator = np.random.default_rng(first)
    vectors = generator.standard_normal((num_rows, 4)).astype(np.float32)
    return pa.table(
        {
            "id": pa.array(np.arange(first, first + num_rows)),
            "u": pa.array(generator.integers(0, 2**64 - 1, num_rows, np.uint64)),
            "name": pa.array(generator.choice(["a", "b", "c"], num_rows), pa.large_string()),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4),
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Versions 1 and 2 append, version 3 deletes, of fragments of 100 rows."""
    folder = tmp_path / "t.lance"
    lance.write_dataset(rows(), str(folder), max_rows_per_file=100)
    lance.write_dataset(rows(100, first=500), str(folder), mode="append")
    lance.dataset(str(folder)).delete("id % 7 = 0")
    return folder


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_pylance_are_read_and_those_of_ours_by_it(tmp_path: Path, name: str) -> None:
    table = pa.table({"c": COLUMNS[name], "id": [0, 1, 2]})
    first, second = tmp_path / "a.lance", tmp_path / "b.lance"
    lance.write_dataset(table, str(first), data_storage_version="2.2")
    made = source(first)
    schema = made.schema()
    found = read(made.reader(schema))
    wanted = readable(table.to_batches()[0], found.schema)
    assert_same(found["c"].combine_chunks(), wanted.column("c"))
    write(second, found, schema=schema, num_tasks=1)  # made with the types that were read
    write(second, found, num_tasks=1)
    once = lance.dataset(str(first)).to_table()["c"].combine_chunks()
    twice = lance.dataset(str(second)).to_table()["c"].combine_chunks()
    if len(children_of(once.type)) == 0 or pa.types.is_fixed_size_list(once.type):
        assert_same(twice, pa.concat_arrays([once, once]))
    else:  # nested columns become what Spark has
        assert_same(twice, pa.concat_arrays([wanted.column("c")] * 2).cast(twice.type))


@given(lance_cases("2.2"))
@lenient
def test_pylance_reads_random_tables_as_we_write_them(case: LanceCase) -> None:
    """A copy made through Spark's types: columns that Spark knows, or knows from the metadata."""
    table = case.table.slice(0, 300)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "a.lance", Path(folder) / "b.lance"
        batches = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        lance_core.write_dataset(str(first), batches)
        made = source(first)
        try:
            schema = made.schema()
            copied = read(made.reader(schema))
        except (UnsupportedFeatureError, InvalidRequestError):
            return
        lance_core.write_dataset(str(second), table.slice(0, 0))
        write(second, copied)  # appended to the types of the table
        if not any(has_nanoseconds(field.type) for field in table.schema):
            found = lance.dataset(str(second)).to_table()
            for field in table.schema:
                own = lance.dataset(str(first)).to_table(columns=[field.name])
                assert_same(found[field.name].combine_chunks(), own[field.name].combine_chunks())


def test_columns_versions_tags_and_branches_are_read(path: Path) -> None:
    theirs = lance.dataset(str(path))
    theirs.tags.create("first", 1)
    theirs.create_branch("side", 2)
    lance.write_dataset(rows(10, first=900), str(path) + "/tree/side", mode="append")
    assert read(opened(path)).num_rows == 514
    assert read(opened(path, version=2)).num_rows == 600
    assert read(opened(path, tag="first")).num_rows == 500
    assert read(opened(path, branch="side", columns="id"))["id"].to_pylist()[-1] == 909
    assert read(opened(path, branch="side", version=2)).num_rows == 600
    found = read(opened(path, columns='["name", "_rowid"]'))
    assert found.column_names == ["name", "_rowid"]
    wanted = theirs.to_table(columns=["name"], with_row_id=True)
    assert found["_rowid"].cast(pa.uint64()).equals(wanted["_rowid"])
    with pytest.raises(VersionNotFoundError):
        source(path, version=99).schema()
    with pytest.raises(UnknownColumnError):
        source(path, columns="id,nothing").schema()
    with pytest.raises(InvalidRequestError, match="one of them"):
        source(path, version=1, tag="first").schema()
    with pytest.raises(InvalidRequestError, match="no dataset is named"):
        LanceDataSource({}).schema()
    for columns in ("", " , ", "[]"):
        with pytest.raises(InvalidRequestError, match="columns names none"):
            source(path, columns=columns).schema()
    with pytest.raises(InvalidRequestError, match="'verison'; did you mean 'version'"):
        source(path, verison=1).schema()


def test_the_version_of_a_reader_stays_though_others_write(path: Path) -> None:
    reader = opened(path, columns="id")
    lance.write_dataset(rows(5, first=700), str(path), mode="append")
    assert read(reader).num_rows == 514
    assert read(opened(path, columns="id")).num_rows == 519


def test_a_dataset_made_anew_at_a_place_is_another(path: Path) -> None:
    assert read(opened(path, version=1)).num_rows == 500
    moved = path.with_name("old.lance")
    path.rename(moved)
    lance.write_dataset(rows(20), str(path))
    assert read(opened(path, version=1)).num_rows == 20


def test_fragments_are_shared_by_rows(path: Path) -> None:
    def groups(partition_rows: int) -> list[tuple[int, ...]]:
        parts = opened(path, partitionRows=partition_rows).partitions()
        return [each.fragment_ids for each in parts if isinstance(each, FragmentPartition)]

    assert groups(250) == [(0, 1), (2, 3), (4, 5)]
    assert groups(1) == [(0,), (1,), (2,), (3,), (4,), (5,)]
    assert len(groups(1 << 20)) == 1


def test_filters_are_judged_where_the_rows_are(path: Path) -> None:
    wanted = lance.dataset(str(path)).to_table(
        filter="id > 250 AND name IN ('a', 'b') AND id < 590"
    )
    untold = opened(path, columns="id")
    assert list(untold.pushFilters([GreaterThan(("id",), 250)])) == [GreaterThan(("id",), 250)]
    assert read(untold).num_rows == 514
    reader = opened(path, filter="id < 590", columns="id,name", pushFilters="true")
    others = [GreaterThan(("v",), 1.0)]
    left = reader.pushFilters(
        [GreaterThan(("id",), 250), *others, In(("name",), ("a", "b")), GreaterThan(("u",), 1)]
    )
    assert list(left) == [*others, GreaterThan(("u",), 1)]  # of a column that is not read
    found = read(reader)
    assert found["id"].equals(wanted["id"])
    with pytest.raises(InvalidRequestError):
        opened(path, filter="nothing = 3")


def test_a_table_without_rows_is_read(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    lance.write_dataset(rows(0), str(place))
    reader = opened(place)
    assert len(reader.partitions()) == 1
    assert read(reader).num_rows == 0


def test_a_schema_given_to_spark_has_to_be_that_of_the_columns(path: Path) -> None:
    options = ReadOptions.of({"path": str(path)})
    some = pa.schema({"name": pa.string(), "id": pa.int64()})
    read_some = plan_read(options, some)
    assert next(read_some.batches((0,))).schema.equals(some)
    with pytest.raises(InvalidRequestError, match="leave the schema out"):
        plan_read(options, pa.schema({"id": pa.int32()}))
    with pytest.raises(UnknownColumnError):
        plan_read(options, pa.schema({"nothing": pa.int32()}))


@pytest.mark.parametrize("given", ["metadata", "dim", "lance-spark", "option"])
def test_a_new_dataset_has_vectors_where_they_are_named(tmp_path: Path, given: str) -> None:
    table = rows(50)
    schema, _ = spark_rows(table)
    options: dict[str, Any] = {}
    if given == "metadata":
        lance.write_dataset(table, str(tmp_path / "other.lance"))
        schema = source(tmp_path / "other.lance").schema()
    elif given == "option":
        options["vectors"] = "v=4"
    else:
        schema["v"].metadata = {"dim" if given == "dim" else "arrow.fixed-size-list.size": "4"}
    place = tmp_path / "t.lance"
    write(place, table, schema=schema, **options)
    found = lance.dataset(str(place)).to_table()
    assert found["v"].type == pa.list_(pa.float32(), 4)
    assert found.sort_by("id")["v"].combine_chunks().equals(table["v"].combine_chunks())
    assert found["u"].type == (pa.uint64() if given == "metadata" else pa.decimal128(20, 0))
    assert all(field.metadata is None for field in found.schema)
    assert verified(place) == []


def test_rows_are_appended_and_replaced(path: Path) -> None:
    write(path, rows(30, first=1000))
    dataset = lance.dataset(str(path))
    assert dataset.count_rows() == 544
    assert dataset.to_table(filter="id >= 1000").equals(rows(30, first=1000))
    transaction: Any = dataset.read_transaction(4)
    told = transaction.transaction_properties
    assert (told["pipeline.kind"], told["pipeline.item_count"]) == ("write", "2")
    write(path, rows(20).select(["name", "id"]), overwrite=True, maxRowsPerFile=6)
    dataset = lance.dataset(str(path))
    assert dataset.version == 5
    assert dataset.schema.names == ["name", "id"]
    assert len(dataset.get_fragments()) == 4
    assert verified(path) == []


def test_options_of_new_datasets_are_heeded(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    write(place, rows(20), dataStorageVersion="2.0", stableRowIds="true")
    dataset = lance.dataset(str(place))
    assert dataset.data_storage_version == "2.0"
    assert dataset.has_stable_row_ids
    wrong: Any
    for wrong in ({"stableRowIds": "yes"}, {"vectors": "v"}, {"maxRowsPerFile": "0"}):
        with pytest.raises(InvalidRequestError):
            write(place, rows(3), **wrong)


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (pa.table({"id": [1], "other": [2]}), InvalidRequestError),
        (pa.table({"id": ["x"]}), (InvalidRequestError, TypeMismatchError)),
        (pa.table({"id": [1], "v": [[1.0, 2.0]]}), InvalidRequestError),
    ],
    ids=["unknown", "type", "vector"],
)
def test_rows_that_do_not_fit_are_refused(path: Path, table: pa.Table, kind: Any) -> None:
    files = set(path.rglob("*"))
    with pytest.raises(kind):
        write(path, table)
    assert set(path.rglob("*")) == files


def test_a_commit_that_is_made_twice_is_made_once(path: Path) -> None:
    schema, batches = spark_rows(rows(30, first=1000))
    writer = source(path).writer(schema, overwrite=False)
    messages: list[Any] = [writer.write(iter(batches))]
    writer.commit(messages)
    writer.commit(messages)  # its answer was lost on the way
    writer.abort(messages)
    assert lance.dataset(str(path)).version == 4
    assert lance.dataset(str(path)).count_rows() == 544
    assert verified(path) == []


def test_a_write_that_has_a_name_is_done_once(path: Path) -> None:
    for _ in range(3):
        write(path, rows(30, first=1000), jobId="nightly")
        lance.write_dataset(rows(1, first=2000), str(path), mode="append")
    assert lance.dataset(str(path)).count_rows("id >= 1000 AND id < 2000") == 30
    lance.dataset(str(path)).cleanup_old_versions(older_than=timedelta(0))
    write(path, rows(30, first=1000), jobId="another")
    assert lance.dataset(str(path)).count_rows("id >= 1000 AND id < 2000") == 60


def test_writers_at_the_same_time_leave_all_rows(path: Path) -> None:
    schema, batches = spark_rows(rows(30, first=1000))
    writers = [source(path).writer(schema, overwrite=False) for _ in range(3)]
    messages: list[list[Any]] = [[each.write(iter(batches))] for each in writers]
    for writer, own in zip(writers, messages, strict=True):
        writer.commit(own)
    assert lance.dataset(str(path)).count_rows("id >= 1000") == 90
    late = source(path).writer(schema, overwrite=False)
    message: list[Any] = [late.write(iter(batches))]
    write(path, rows(5), overwrite=True)
    with pytest.raises(CommitConflictError):
        late.commit(message)


def test_only_what_committed_attempts_wrote_is_seen(path: Path) -> None:
    """A task that failed after it wrote leaves files that no version names."""
    schema, batches = spark_rows(rows(30, first=1000))
    writer = source(path).writer(schema, overwrite=False)
    writer.write(iter(batches))
    writer.commit([writer.write(iter(batches)), None, writer.write(iter([]))])
    assert lance.dataset(str(path)).count_rows("id >= 1000") == 30


def test_metadata_of_columns_tell_their_types(path: Path) -> None:
    schema = spark_schema(ReadOptions.of({"path": str(path)}))
    told = {field.name: field.metadata for field in schema}
    assert told["id"] is None
    assert told["v"] == {b"SPARK::metadata::json": b'{"lance.type": "fixed_size_list:float:4"}'}
    assert plan_write({"path": str(path)}, schema, replaces_all=True).read_version == 3


def test_columns_of_a_table_in_sql_carry_its_options_but_no_secrets(path: Path) -> None:
    options = {"path": f"file:{path}", "version": "1", "columns": "id", "storage.key": "secret"}
    schema = LanceDataSource({**options, "provider": "lance_py", "owner": "me"}).schema()
    assert "secret" not in schema.json()
    assert read(LanceDataSource({}).reader(schema)).num_rows == 500
    assert read(LanceDataSource({"version": "3"}).reader(schema)).num_rows == 514
    with pytest.raises(InvalidRequestError, match="INSERT INTO t WITH"):
        LanceDataSource({}).writer(schema, overwrite=False)
