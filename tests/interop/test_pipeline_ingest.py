"""Ingest of files without Spark: what is written, read back by pylance."""

from __future__ import annotations

import gzip
import json
import shutil

import lance
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from pipeline.convert import OnBadVector
from pipeline.errors import StageFailedError
from pipeline.ingest import Vectors, ingest_files
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Mode, Place
from tests.pipeline_stages import LocalStages, local_context

DIM = 4


def rows(count, start=0, dim=DIM):
    ids = np.arange(start, start + count)
    vectors = np.arange(count * dim, dtype=np.float32) + start
    lists = pa.ListArray.from_arrays(np.arange(0, count * dim + 1, dim, dtype=np.int32), vectors)
    return pa.table({"id": ids, "text": [f"row {n}" for n in ids], "v": lists})


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "rows"
    place.mkdir()
    return place


def ingested(
    tmp_path, paths, *, context=None, task_rows=1 << 20, skip=False, vectors=None, **given
):
    """Ingest files; return the dataset as pylance sees it."""
    uri = str(tmp_path / "a.lance")
    known = {"types", "form", "delimiter"} & set(given)
    sources = Sources(tuple(map(str, paths)), **{name: given.pop(name) for name in known})
    version = ingest_files(
        local_context(uri) if context is None else context,
        sources,
        Place(uri, **given),
        vectors=vectors,
        task_rows=task_rows,
        skip_bad_items=skip,
    )
    dataset = lance.dataset(uri)
    assert dataset.version == version
    dataset.validate()
    return dataset


def vector(dim=None, on_bad=OnBadVector.ERROR):
    return Vectors(("v",), dim, on_bad)


def test_row_groups_of_files_are_tasks_and_fragments_in_the_order_of_the_files(tmp_path, folder):
    for number, name in enumerate(("b", "a", "c")):
        pq.write_table(rows(100, number * 100), folder / f"{name}.parquet", row_group_size=30)
    stages = LocalStages()
    files = [folder / f"{name}.parquet" for name in "bac"]
    context = local_context(tmp_path / "a.lance", stages=stages)
    dataset = ingested(tmp_path, files, context=context, vectors=vector(), task_rows=60)
    assert stages.ran == [("ingest", 6)]
    assert dataset.schema.field("v").type == pa.list_(pa.float32(), DIM)
    table = dataset.to_table()
    assert table["id"].to_pylist() == list(range(300))
    assert table["v"].to_pylist() == pa.concat_tables(rows(100, n * 100) for n in range(3))["v"].to_pylist()  # fmt: skip  # noqa: E501
    assert [f.count_rows() for f in dataset.get_fragments()] == [60, 40, 60, 40, 60, 40]
    properties = dataset.read_transaction(1).transaction_properties
    assert properties == {
        "pipeline.job_id": context.job_id, "pipeline.kind": "ingest", "pipeline.item_count": "6",
    }  # fmt: skip


def test_small_files_share_a_task_and_large_tasks_are_cut_into_fragments(tmp_path, folder):
    for number in range(10):
        pq.write_table(rows(10, number * 10), folder / f"{number}.parquet")
    dataset = ingested(tmp_path, [folder], max_rows_per_file=40)
    assert [f.count_rows() for f in dataset.get_fragments()] == [40, 40, 20]
    assert dataset.to_table()["id"].to_pylist() == list(range(100))


FORMATS = {
    "parquet": pq.write_table,
    "arrow": lambda table, path: pa.feather.write_feather(table, path, compression="zstd"),
    "csv": pa.csv.write_csv,
    "tsv": lambda table, path: pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t")),
    "jsonl": lambda table, path: path.write_text(
        "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    ),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("task_rows", [7, 1 << 20])
def test_each_format_gives_the_same_rows_however_it_is_cut(tmp_path, folder, form, task_rows):
    table = rows(100)
    if form in ("csv", "tsv"):
        table = table.drop_columns(["v"])
    FORMATS[form](table, folder / f"a.{form}")
    vectors = vector() if "v" in table.schema.names else None
    dataset = ingested(tmp_path, [folder], task_rows=task_rows, vectors=vectors)
    assert dataset.to_table().to_pylist() == table.to_pylist()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_compressed_files_of_lines_are_read_whole(tmp_path, folder, form):
    table = rows(50).drop_columns(["v"])
    FORMATS[form](table, folder / f"a.{form}")
    data = (folder / f"a.{form}").read_bytes()
    (folder / f"a.{form}").unlink()
    (folder / f"a.{form}.gz").write_bytes(gzip.compress(data))
    dataset = ingested(tmp_path, [folder / f"*.{form}.gz"], task_rows=7)
    assert dataset.to_table().to_pylist() == table.to_pylist()


def test_lines_without_an_end_and_of_windows_are_read(tmp_path, folder):
    (folder / "a.csv").write_bytes(b"id,s\r\n1,a\r\n2,b")
    (folder / "b.csv").write_bytes(b"id,s\n")
    dataset = ingested(tmp_path, [folder], task_rows=1)
    assert dataset.to_table().to_pylist() == [{"id": 1, "s": "a"}, {"id": 2, "s": "b"}]


def test_appended_columns_take_the_types_of_the_table_and_may_be_missing(tmp_path, folder):
    pq.write_table(rows(20), folder / "a.parquet")
    ingested(tmp_path, [folder / "a.parquet"], vectors=vector(), data_storage_version="2.1")
    (folder / "b.jsonl").write_text('{"id": 20, "v": [1, 2, 3, 4.5]}\n{"id": 21}\n')
    binary = pa.table({"v": [np.ones(DIM, np.float32).tobytes()], "id": pa.array([22], pa.int8())})
    pq.write_table(binary, folder / "c.parquet")
    ingested(tmp_path, [folder / "b.jsonl"])
    dataset = ingested(tmp_path, [folder / "c.parquet"])
    assert dataset.version == 3
    assert dataset.data_storage_version == "2.1"
    assert dataset.to_table().slice(20).to_pylist() == [
        {"id": 20, "text": None, "v": [1.0, 2.0, 3.0, 4.5]},
        {"id": 21, "text": None, "v": None},
        {"id": 22, "text": None, "v": [1.0] * DIM},
    ]


def test_overwriting_replaces_rows_and_columns_and_old_versions_stay(tmp_path, folder):
    pq.write_table(rows(20), folder / "a.parquet")
    pq.write_table(pa.table({"other": ["x", "y"]}), folder / "b.parquet")
    ingested(tmp_path, [folder / "a.parquet"])
    dataset = ingested(tmp_path, [folder / "b.parquet"], mode=Mode.OVERWRITE)
    assert dataset.to_table().to_pylist() == [{"other": "x"}, {"other": "y"}]
    assert lance.dataset(dataset.uri, version=1).count_rows() == 20


def test_stable_row_ids_are_given_out_in_the_order_of_rows(tmp_path, folder):
    pq.write_table(rows(20), folder / "a.parquet", row_group_size=7)
    dataset = ingested(tmp_path, [folder], stable_row_ids=True, task_rows=7)
    assert dataset.has_stable_row_ids
    table = dataset.to_table(with_row_id=True)
    assert table["_rowid"].to_pylist() == table["id"].to_pylist() == list(range(20))


def test_creating_where_a_dataset_is_and_stable_ids_where_there_are_none_are_refused(
    tmp_path, folder
):
    pq.write_table(rows(20), folder / "a.parquet")
    ingested(tmp_path, [folder])
    with pytest.raises(InvalidRequestError, match="there is a dataset at"):
        ingested(tmp_path, [folder], mode=Mode.CREATE)
    with pytest.raises(InvalidRequestError, match="without stable row ids"):
        ingested(tmp_path, [folder], stable_row_ids=True)
    with pytest.raises(InvalidRequestError, match=r"version 2\.2, not 2\.0"):
        ingested(tmp_path, [folder], data_storage_version="2.0")
    assert lance.dataset(str(tmp_path / "a.lance")).version == 1


def bad_rows():
    return pa.table({"id": range(5), "v": [[1.0] * DIM, None, [1.0], [2.0, None, 2.0, 2.0], [3.0] * DIM]})  # fmt: skip  # noqa: E501


def test_a_bad_vector_ends_the_job_with_its_file_and_row_and_no_version(tmp_path, folder):
    pq.write_table(bad_rows(), folder / "a.parquet", row_group_size=2)
    with pytest.raises(StageFailedError, match=r'a\.parquet, row 2, column "v"'):
        ingested(tmp_path, [folder], vectors=vector())
    assert not (tmp_path / "a.lance" / "_versions").exists()


@pytest.mark.parametrize(
    ("on_bad", "expected"),
    [
        (OnBadVector.NULL, [[1.0] * DIM, None, None, None, [3.0] * DIM]),
        (OnBadVector.DROP, [[1.0] * DIM, None, [3.0] * DIM]),
    ],
)
def test_bad_vectors_are_made_null_or_dropped(tmp_path, folder, on_bad, expected):
    pq.write_table(bad_rows(), folder / "a.parquet")
    dataset = ingested(tmp_path, [folder], vectors=vector(on_bad=on_bad))
    assert dataset.to_table()["v"].to_pylist() == expected


def test_a_bad_file_ends_the_job_or_is_skipped_and_the_rest_committed(tmp_path, folder):
    for number in range(3):
        pq.write_table(rows(10, number * 10), folder / f"{number}.parquet")
    pq.write_table(bad_rows(), folder / "1.parquet")
    with pytest.raises(StageFailedError, match=r"1\.parquet"):
        ingested(tmp_path, [folder], vectors=vector(DIM), task_rows=10)
    dataset = ingested(tmp_path, [folder], vectors=vector(DIM), task_rows=10, skip=True)
    assert dataset.to_table()["id"].to_pylist() == [*range(10), *range(20, 30)]
    assert dataset.version == 1


def test_files_that_cannot_be_read_are_named(tmp_path, folder):
    (folder / "a.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(InvalidRequestError, match=r"a\.parquet cannot be read"):
        ingested(tmp_path, [folder])
    with pytest.raises(InvalidRequestError, match="there is no file"):
        ingested(tmp_path, [folder / "b.parquet"])
    with pytest.raises(InvalidRequestError, match="tells no format"):
        ingested(tmp_path, [folder / "b.xml"])
    with pytest.raises(InvalidRequestError, match="no files of rows"):
        ingested(tmp_path, [folder / "*.csv"])


def test_columns_that_do_not_fit_are_refused_before_any_task(tmp_path, folder):
    pq.write_table(rows(20), folder / "a.parquet")
    with pytest.raises(UnknownColumnError, match='"w"'):
        ingested(tmp_path, [folder], vectors=Vectors(("w",)))
    with pytest.raises(TypeMismatchError, match='"text" is string'):
        ingested(tmp_path, [folder], vectors=Vectors(("text",), 4))
    with pytest.raises(TypeMismatchError, match='"id" is int64'):
        ingested(tmp_path, [folder], vectors=Vectors(("id",)))
    for dimension in (0, -1):
        with pytest.raises(InvalidRequestError, match=f"dim is {dimension}; it may be 1"):
            Vectors(("v",), dimension)
    pq.write_table(pa.table({"_rowid": [1]}), folder.with_name("reserved.parquet"))
    with pytest.raises(InvalidRequestError, match="_rowid"):
        ingested(tmp_path, [folder.with_name("reserved.parquet")])
    ingested(tmp_path, [folder])
    pq.write_table(pa.table({"id": [1], "more": [1]}), folder / "b.parquet")
    with pytest.raises(InvalidRequestError, match=r"'more'"):
        ingested(tmp_path, [folder / "b.parquet"])


def test_a_value_that_the_tables_type_has_no_room_for_is_told(tmp_path, folder):
    pq.write_table(pa.table({"n": pa.array([1], pa.int8())}), folder / "a.parquet")
    ingested(tmp_path, [folder])
    pq.write_table(pa.table({"n": [1, 1000]}), folder / "a.parquet")
    with pytest.raises(StageFailedError, match=r'a\.parquet, row 0 and after, column "n"'):
        ingested(tmp_path, [folder])


def test_no_rows_make_an_empty_dataset_and_append_nothing(tmp_path, folder):
    pq.write_table(rows(0), folder / "a.parquet")
    dataset = ingested(tmp_path, [folder], vectors=vector(DIM))
    assert (dataset.version, dataset.count_rows()) == (1, 0)
    assert ingested(tmp_path, [folder]).version == 1
    assert dataset.schema.field("v").type == pa.list_(pa.float32(), DIM)


def test_a_plan_can_be_looked_at_without_doing_anything(tmp_path, folder):
    pq.write_table(rows(20), folder / "a.parquet")
    context = local_context(tmp_path / "a.lance", dry_run=True)
    assert ingest_files(context, Sources((str(folder),)), Place(context.uri)) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_types_that_files_do_not_tell_can_be_given(tmp_path, folder):
    (folder / "a.csv").write_text("zip,n\n01234,1\n")
    (folder / "b.jsonl").write_text('{"zip": "2", "n": 3}\n')
    dataset = ingested(tmp_path, [folder], types={"zip": pa.string(), "n": pa.float64()})
    assert dataset.to_table().to_pylist() == [{"zip": "01234", "n": 1.0}, {"zip": "2", "n": 3.0}]


def test_columns_of_files_are_joined_and_those_missing_null(tmp_path, folder):
    pq.write_table(pa.table({"id": [1], "a": ["x"]}), folder / "a.parquet")
    pq.write_table(pa.table({"b": [2.0], "id": pa.array([2], pa.int32())}), folder / "b.parquet")
    dataset = ingested(tmp_path, [folder])
    assert dataset.to_table().to_pylist() == [
        {"id": 1, "a": "x", "b": None},
        {"id": 2, "a": None, "b": 2.0},
    ]


def test_text_becomes_whatever_type_the_table_has(tmp_path, folder):
    kinds = {
        "json": pa.json_(),
        "day": pa.date32(),
        "price": pa.decimal128(10, 2),
        "at": pa.timestamp("us"),
        "data": pa.binary(),
        "half": pa.float16(),
    }
    table = pa.schema(kinds).empty_table()
    with pa.ipc.new_file(folder / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    ingested(tmp_path, [folder / "a.arrow"])
    row = {
        "json": '{"a":3}',
        "day": "2026-01-02",
        "price": "2.50",
        "at": "2026-01-02T03:04:05",
        "data": "yy",
        "half": 1.5,
    }
    (folder / "b.jsonl").write_text(json.dumps(row) + "\n")
    pa.csv.write_csv(pa.Table.from_pylist([row]), folder / "c.csv")
    ingested(tmp_path, [folder / "b.jsonl"])
    dataset = ingested(tmp_path, [folder / "c.csv"])
    first, second = dataset.to_table().to_pylist()
    assert first == second
    assert list(map(str, first.values())) == [
        '{"a":3}', "2026-01-02", "2.50", "2026-01-02 03:04:05", "b'yy'", "1.5",
    ]  # fmt: skip


def test_words_of_text_stay_and_those_among_numbers_are_null(tmp_path, folder):
    words = ["NULL", "NA", "N/A", "nan", "null", "", '""', "a"]
    numbers = ["NaN", "NA", "-inf", "null", "", "1", "2", "3"]
    lines = [f"{w},{n}\n" for w, n in zip(words, numbers, strict=True)]
    (folder / "a.csv").write_text("".join(["s,n\n", *lines]))
    (folder / "b.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    dataset = ingested(tmp_path, [folder], types={"n": pa.float32()}, task_rows=3)
    table = dataset.to_table()
    assert table["s"].to_pylist() == [*words[:5], None, "", "a"] * 2
    expected = [np.nan, None, -np.inf, None, None, 1.0, 2.0, 3.0] * 2
    assert repr(table["n"].to_pylist()) == repr([None if n is None else float(n) for n in expected])


@pytest.mark.parametrize("form", ["csv", "jsonl", "jsonl.gz"])
def test_lines_may_be_longer_than_the_beginning_that_is_looked_at(tmp_path, folder, form):
    long = "x" * (5 << 20)
    lines = f"id,s\n1,{long}\n2,y\n" if form == "csv" else f'{{"id":1,"s":"{long}"}}\n{{"id":2}}'
    data = gzip.compress(lines.encode()) if form.endswith("gz") else lines.encode()
    (folder / f"a.{form}").write_bytes(data)
    table = ingested(tmp_path, [folder]).to_table()
    assert table["id"].to_pylist() == [1, 2]
    assert table["s"][0].as_py() == long


def test_types_are_given_to_columns_that_there_are_or_come_late_in_json(tmp_path, folder):
    (folder / "a.csv").write_text("zip\n007\n")
    with pytest.raises(InvalidRequestError, match=r"--type names 'zipp', the files have 'zip'"):
        ingested(tmp_path, [folder], types={"zipp": pa.string()})
    late = folder / "a.jsonl"
    late.write_text('{"id": 1, "s": "some text"}\n' * 50_000 + '{"id": 2, "rare": 3}\n')
    table = ingested(tmp_path, [late], types={"rare": pa.int32()}).to_table()
    assert table["rare"].null_count == 50_000
    assert table["rare"][50_000].as_py() == 3


@pytest.mark.parametrize("task_rows", [1 << 20, 100, 7, 1])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_values_in_quotes_may_hold_lines_that_look_like_rows(
    tmp_path, folder, task_rows, delimiter
):
    texts = [f"note\n{n}{delimiter}b" if n % 3 else f'{n}" pipe' for n in range(300)]
    quoted = [f'"{text}"' if "\n" in text else text for text in texts]
    lines = [f"{n}{delimiter}{text}\n" for n, text in enumerate(quoted)]
    (folder / "a.csv").write_text(f'id{delimiter}"s\nt"\n' + "".join(lines))
    dataset = ingested(tmp_path, [folder], delimiter=delimiter, task_rows=task_rows)
    table = dataset.to_table()
    assert table.column_names == ["id", "s\nt"]
    assert table["id"].to_pylist() == list(range(300))
    assert table["s\nt"].to_pylist() == texts
    assert task_rows > 100 or len(dataset.get_fragments()) > 1


LISTS = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "list of lists": lambda inner: pa.list_(inner.with_type(pa.list_(inner))),
    "struct": lambda inner: pa.struct([pa.field("l", pa.list_(inner))]),
}


@pytest.mark.parametrize("name", ["element", "item", "other"])
@pytest.mark.parametrize("kind", LISTS)
def test_lists_are_appended_however_their_elements_are_called(tmp_path, folder, kind, name):
    value = {"list": [1, 2], "large_list": [1, 2], "list of lists": [[1], [2]]}.get(
        kind, {"l": [1]}
    )
    for inner in ("item", name):
        made = LISTS[kind](pa.field(inner, pa.int32()))
        table = pa.table({"c": pa.array([value, None], made)})
        pa.feather.write_feather(table, folder / f"{inner}.arrow", compression="zstd")
    lance.write_dataset(pa.feather.read_table(folder / f"{name}.arrow"), tmp_path / "a.lance")
    schema = lance.dataset(tmp_path / "a.lance").schema
    ingested(tmp_path, [folder / "item.arrow"])
    dataset = ingested(tmp_path, [folder / f"{name}.arrow"])
    assert dataset.schema.equals(schema, check_metadata=True)
    assert dataset.to_table()["c"].to_pylist() == [value, None] * 3


def test_a_parquet_file_with_lists_is_appended_to_what_was_made_of_it(tmp_path, folder):
    pq.write_table(pa.table({"l": pa.array([[1], []], pa.list_(pa.int32()))}), folder / "a.parquet")
    pa.feather.write_feather(pa.table({"l": [[2], [3]]}), folder / "b.feather")
    ingested(tmp_path, [folder / "a.parquet"])
    dataset = ingested(tmp_path, [folder / "a.parquet", folder / "b.feather"])
    assert dataset.to_table()["l"].to_pylist() == [[1], [], [1], [], [2], [3]]


def test_an_ingest_that_is_done_says_so_where_its_dataset_is_gone(tmp_path, folder):
    pq.write_table(rows(5), folder / "a.parquet")
    context = local_context(tmp_path / "a.lance", job_id="one")
    ingested(tmp_path, [folder], context=context)
    shutil.rmtree(tmp_path / "a.lance")
    with pytest.raises(InvalidRequestError, match=r"'one' was done .* give another job id"):
        ingested(tmp_path, [folder], context=context)
    assert not (tmp_path / "a.lance").exists()
