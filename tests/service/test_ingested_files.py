"""Values of text files come into a dataset as they are, or not at all."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_core import open_dataset, write_dataset
from service.cli.main import app

RUNNER = CliRunner(env={"COLUMNS": "200"})


@pytest.fixture
def uri(tmp_path):
    return tmp_path / "t.lance"


def ingest(source, uri, *options, status=0):
    done = RUNNER.invoke(app, ["ingest", str(source), str(uri), *options])
    assert done.exit_code == status, done.output
    return re.sub(r"\s+", " ", done.output)


def lines(path, *rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def rows_of(uri):
    return open_dataset(uri).scan().read_all().to_pylist()


def test_a_key_that_comes_late_is_a_column_of_all_rows(tmp_path, uri):
    many = [{"id": number, "fill": "x" * 50} for number in range(80_000)]  # over one block
    source = lines(tmp_path / "a.jsonl", *many, {"id": -1, "late": "x"})
    ingest(source, uri)
    stored = open_dataset(uri)
    assert stored.schema.names == ["id", "fill", "late"]
    assert stored.count_rows() == 80_001
    assert stored.take([80_000]).to_pylist() == [{"id": -1, "fill": None, "late": "x"}]


def test_integers_beyond_64_bits_are_refused_and_others_exact(tmp_path, uri):
    ingest(lines(tmp_path / "a.jsonl", {"id": 2**53 + 1}, {"id": -(2**63)}), uri)
    assert [row["id"] for row in rows_of(uri)] == [2**53 + 1, -(2**63)]
    for wrong in (2**70, 2**64 - 1):
        source = lines(tmp_path / "b.jsonl", {"id": 1}, {"id": wrong})
        assert "b.jsonl, from line" in ingest(source, uri, status=1)


def test_whole_numbers_that_no_double_holds_do_not_become_doubles(tmp_path, uri):
    source = lines(tmp_path / "a.jsonl", {"x": 0.5}, {"x": 2**53 + 1})
    assert "a.jsonl" in ingest(source, uri, status=1)
    ingest(lines(tmp_path / "a.jsonl", {"x": 0.5}, {"x": 3}), uri)
    assert [row["x"] for row in rows_of(uri)] == [0.5, 3.0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"a": 1}\n[1]', "line 2"),
        ('{"a": 1}\n\n{"a": ', "line 3"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1}\n{"a": "x"}', "from line 2"),
        ("", "no column"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path, uri, text, wanted):
    (tmp_path / "a.jsonl").write_text(text)
    assert wanted in ingest(tmp_path / "a.jsonl", uri, status=1)


def test_keys_that_the_table_has_no_place_for_are_refused(tmp_path, uri):
    write_dataset(uri, pa.table({"id": [1], "p": [{"x": 1}]}))
    assert "more" in ingest(lines(tmp_path / "a.jsonl", {"id": 2, "more": 3}), uri, status=1)
    told = ingest(lines(tmp_path / "a.jsonl", {"id": 2, "p": {"x": 1, "y": 2}}), uri, status=1)
    assert "p.y" in told
    ingest(lines(tmp_path / "a.jsonl", {"p": {"x": 7}}), uri)
    assert rows_of(uri)[1] == {"id": None, "p": {"x": 7}}


def test_values_take_the_types_of_the_table(tmp_path, uri):
    schema = pa.schema(
        {"zip": pa.string(), "n": pa.float64(), "k": pa.int32(), "d": pa.date32(), "e": pa.int8()}
    )
    write_dataset(uri, schema.empty_table())
    (tmp_path / "a.csv").write_text("zip,n,k,d,e\n00777,2,3,2026-01-31,\n")
    ingest(tmp_path / "a.csv", uri)
    ingest(lines(tmp_path / "b.jsonl", {"zip": "1", "n": 2, "k": 3}), uri)
    assert [(row["zip"], row["n"], row["k"]) for row in rows_of(uri)] == [
        ("00777", 2.0, 3),
        ("1", 2.0, 3),
    ]
    assert "k" in ingest(lines(tmp_path / "c.jsonl", {"k": 2**40}), uri, status=1)


def test_types_can_be_given(tmp_path, uri):
    (tmp_path / "a.csv").write_text("zip;n\n00777;2\n")
    ingest(
        tmp_path / "a.csv", uri, "--type", "zip=string", "--type", "n=double", "--delimiter", ";"
    )
    assert rows_of(uri) == [{"zip": "00777", "n": 2.0}]


@pytest.mark.parametrize(
    "options", [["--type", "zip=text9"], ["--type", "string"], ["--delimiter", ";;"]]
)
def test_options_that_say_nothing_are_refused(tmp_path, uri, options):
    (tmp_path / "a.csv").write_text("zip\n1\n")
    ingest(tmp_path / "a.csv", uri, *options, status=2)


def test_a_column_that_is_empty_at_first_is_text(tmp_path, uri):
    (tmp_path / "a.csv").write_text("id,note\n" + "1,\n" * 400_000 + "2,late\n")
    ingest(tmp_path / "a.csv", uri)
    stored = open_dataset(uri)
    assert stored.schema.field("note").type == pa.string()
    assert stored.take([0, 400_000])["note"].to_pylist() == [None, "late"]


def test_text_that_is_no_utf8_is_refused(tmp_path, uri):
    (tmp_path / "a.csv").write_bytes("name\nMünchen\n".encode("latin-1"))
    assert "UTF-8" in ingest(tmp_path / "a.csv", uri, status=1)


def test_words_of_text_stay_and_those_among_numbers_are_null(tmp_path, uri):
    (tmp_path / "a.csv").write_text('s,n\nNULL,NaN\nNA,NA\n,inf\n"",1\n')
    ingest(tmp_path / "a.csv", uri)
    assert [row["s"] for row in rows_of(uri)] == ["NULL", "NA", None, ""]
    assert str([row["n"] for row in rows_of(uri)]) == "[nan, None, inf, 1.0]"


def test_a_value_of_another_type_far_down_is_an_error(tmp_path, uri):
    (tmp_path / "a.csv").write_text("id\n" + "1\n" * 600_000 + "x\n")
    assert "--type" in ingest(tmp_path / "a.csv", uri, status=1)


def test_vectors_are_float32_whatever_the_file_has(tmp_path, uri):
    ingest(lines(tmp_path / "a.jsonl", {"v": [1, 2.5]}, {"v": [3, 4]}), uri, "--vector", "v")
    assert open_dataset(uri).schema.field("v").type == pa.list_(pa.float32(), 2)
    ingest(lines(tmp_path / "a.jsonl", {"v": [5, 6]}), uri)
    assert [row["v"] for row in rows_of(uri)] == [[1.0, 2.5], [3.0, 4.0], [5.0, 6.0]]
