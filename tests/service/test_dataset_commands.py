"""The commands on datasets, as a user types them."""

from __future__ import annotations

import gzip
import re

import lance
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lance_core import open_dataset, write_dataset
from service.cli.main import app

RUNNER = CliRunner(env={"COLUMNS": "200"})
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "name": [f"n{i}" for i in range(100)]})


def run(*arguments, status=0):
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return re.sub(r"\s+", " ", done.output)


@pytest.fixture
def dataset(tmp_path):
    uri = tmp_path / "t.lance"
    write_dataset(uri, ROWS, max_rows_per_file=25)
    return uri


def rows_of(uri):
    return lance.dataset(str(uri)).to_table()


def test_ingest_makes_a_dataset_and_appends_to_it(tmp_path):
    source, uri = tmp_path / "a.parquet", tmp_path / "t.lance"
    pq.write_table(ROWS, source)
    assert "version 1: 100 rows, 1 fragment " in run("ingest", source, uri)
    assert "version 2: 200 rows" in run("ingest", source, uri)
    assert rows_of(uri) == pa.concat_tables([ROWS, ROWS])


def write_csv(path):
    pyarrow.csv.write_csv(ROWS, path)


def write_compressed_csv(path):
    with gzip.open(path, "wb") as sink:
        pyarrow.csv.write_csv(ROWS, sink)


def write_tsv(path):
    options = pyarrow.csv.WriteOptions(delimiter="\t")
    pyarrow.csv.write_csv(ROWS, path, options)


def write_json_lines(path):
    path.write_bytes(b"\n".join(orjson.dumps(row) for row in ROWS.to_pylist()))


def write_arrow(path):
    with pa.ipc.new_file(path, ROWS.schema) as writer:
        writer.write_table(ROWS)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.csv", write_csv),
        ("a.CSV.gz", write_compressed_csv),
        ("a.tsv", write_tsv),
        ("a.jsonl", write_json_lines),
        ("a.arrow", write_arrow),
    ],
)
def test_ingest_reads_files_by_their_names(tmp_path, name, write):
    write(tmp_path / name)
    run("ingest", tmp_path / name, tmp_path / "t.lance")
    assert rows_of(tmp_path / "t.lance") == ROWS


def test_ingest_joins_files_of_several_formats_column_by_column(tmp_path):
    write_csv(tmp_path / "a.csv")
    pq.write_table(ROWS.append_column("more", [[1.5] * 100]), tmp_path / "b.parquet")
    run("ingest", tmp_path / "a.csv", tmp_path / "b.parquet", tmp_path / "t.lance")
    assert rows_of(tmp_path / "t.lance")["more"].to_pylist() == [None] * 100 + [1.5] * 100


def test_ingest_makes_vectors_of_lists(tmp_path):
    lists = pa.table({"v": pa.array([None, [1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32()))})
    pq.write_table(lists, tmp_path / "a.parquet")
    run("ingest", tmp_path / "a.parquet", tmp_path / "t.lance", "--vector", "v")
    stored = open_dataset(tmp_path / "t.lance")
    assert stored.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert stored.scan().read_all()["v"].to_pylist() == [None, [1.0, 2.0], [3.0, 4.0]]
    assert stored.search([1.0, 2.0], 1)["_distance"].to_pylist() == [0.0]


def test_ingest_refuses_vectors_of_several_lengths(tmp_path):
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0]]}), tmp_path / "a.parquet")
    told = run("ingest", tmp_path / "a.parquet", tmp_path / "t.lance", "--vector", "v", status=1)
    assert "not all vectors are of one length" in told
    assert not (tmp_path / "t.lance" / "data").exists()


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.txt", b"x", "tells no format"),
        ("a.parquet", b"no parquet", "cannot be read"),
        ("missing.csv", None, "there is no file"),
        ("a.jsonl", b'{"a": 1}\n{"a": "x"}', "a.jsonl"),
    ],
)
def test_ingest_tells_which_file_is_wrong(tmp_path, name, content, wanted):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert wanted in run("ingest", tmp_path / name, tmp_path / "t.lance", status=1)


def test_delete_tells_how_many_rows_are_gone(dataset):
    assert "version 2: deleted 40 rows" in run("delete", dataset, "id >= 60")
    assert rows_of(dataset)["id"].to_pylist() == list(range(60))
    assert "deleted 0 rows" in run("delete", dataset, "id > 1000")


def test_a_predicate_that_cannot_be_read_is_an_error_with_status_1(dataset):
    assert "error:" in run("delete", dataset, "id ==== 3", status=1)


def test_compact_tells_what_became_of_the_fragments(dataset):
    assert "version 3: 4 fragments became 1" in run("compact", dataset)
    assert rows_of(dataset) == ROWS
    assert "nothing to gain" in run("compact", dataset)


def test_compact_writes_indices_anew_and_names_those_that_cannot_follow(dataset):
    for kind in ("BTREE", "ZONEMAP"):
        lance.dataset(str(dataset)).create_scalar_index("id", kind, name=f"{kind}_of_id")
    num_rows = open_dataset(dataset).count_rows()
    told = run("compact", dataset, "--indices", "remap")
    assert f"index ZONEMAP_of_id covers {num_rows:,} rows less" in " ".join(told.split())
    assert "BTREE" not in told
    plan = lance.dataset(str(dataset)).scanner(filter="id = 3").explain_plan()
    assert "BTREE_of_id" in plan


def test_cleanup_lists_what_it_would_remove_and_then_removes_it(dataset):
    run("compact", dataset)
    dry = run("cleanup", dataset, "--retain-versions", 1, "--dry-run")
    assert "would remove 2 versions" in dry
    assert len(open_dataset(dataset).versions()) == 3
    assert "removed 2 versions" in run("cleanup", dataset, "--retain-versions", 1)
    assert [each.version for each in open_dataset(dataset).versions()] == [3]
    assert rows_of(dataset) == ROWS


def test_cleanup_keeps_tagged_versions_if_told_to(dataset):
    run("tag", "create", dataset, "first", "--version", 1)
    run("compact", dataset)
    refused = run("cleanup", dataset, "--retain-versions", 1, status=1)
    assert "tagged" in refused
    run("cleanup", dataset, "--retain-versions", 1, "--keep-tagged")
    assert rows_of(dataset) == lance.dataset(str(dataset), version="first").to_table()


def test_an_age_that_is_none_is_refused_before_anything_is_opened(tmp_path):
    told = run("cleanup", tmp_path / "nowhere", "--older-than", "soon", status=2)
    assert "is no age" in told


def test_tags_are_made_moved_listed_and_deleted(dataset):
    run("delete", dataset, "id = 0")
    run("tag", "create", dataset, "here")
    assert lance.dataset(str(dataset)).tags.list()["here"]["version"] == 2
    run("tag", "update", dataset, "here", "--version", 1)
    assert re.search(r"here main 1", run("tag", "list", dataset))
    run("tag", "delete", dataset, "here")
    assert "no tags" in run("tag", "list", dataset)
    assert "error" in run("tag", "delete", dataset, "here", status=1)


def test_verify_finds_nothing_in_a_sound_dataset_and_names_a_damaged_file(dataset):
    assert "no fault found" in run("verify", dataset)
    (first, *_) = sorted((dataset / "data").iterdir())
    first.write_bytes(first.read_bytes()[:-20])
    told = run("verify", dataset, status=1)
    assert f"data/{first.name}" in told
    assert "1 fault found" in told


def test_inspect_draws_what_is_deleted_and_what_an_index_covers(dataset):
    theirs = lance.dataset(str(dataset))
    theirs.create_scalar_index("id", "BTREE")
    theirs.delete("id < 25 OR id = 30")
    lance.write_dataset(ROWS, str(dataset), mode="append")
    shown = run("inspect", dataset)
    assert "199 rows" not in shown
    assert "174 rows, 4 fragments" in shown
    assert "id_idx id BTREE" in re.sub(r"[^\w ]+", "", shown).replace("  ", " ")
    assert "deleted ░··· " in shown
    assert "id_idx ███· " in f"{shown} "


def test_inspect_prints_json_of_a_dataset_and_of_a_file(dataset):
    report = orjson.loads(RUNNER.invoke(app, ["inspect", str(dataset), "--json"]).stdout)
    assert report["num_rows"] == 100
    assert [each["physical_rows"] for each in report["fragments"]] == [25] * 4
    assert report["schema"] == {"id": "int64", "name": "string"}
    (first, *_) = sorted((dataset / "data").iterdir())
    report = orjson.loads(RUNNER.invoke(app, ["inspect", str(first), "--json"]).stdout)
    assert report["num_rows"] == 25


def test_inspect_of_an_old_version_shows_that_version(dataset):
    run("delete", dataset, "id < 90")
    assert "version 1, 100 rows" in run("inspect", dataset, "--version", "1")


@pytest.mark.parametrize("command", ["inspect", "verify", "compact", "cleanup"])
def test_a_place_without_a_dataset_is_an_error_with_status_1(tmp_path, command):
    assert "error:" in run(command, tmp_path / "nowhere.lance", status=1)


def test_inspect_tells_folders_and_other_files_from_datasets(tmp_path):
    assert "is a folder without a dataset" in run("inspect", tmp_path, status=1)
    (tmp_path / "a.txt").write_text("some text " * 10)
    assert "it is no Lance file" in run("inspect", tmp_path / "a.txt", status=1)


def test_storage_options_without_a_value_are_refused(dataset):
    told = run("verify", dataset, "--storage-option", "region", status=2)
    assert "KEY=VALUE" in told
