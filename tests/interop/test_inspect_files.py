"""What ``lance-serve inspect`` says of files that pylance wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_core.file.inspect import inspect_file
from service.cli.main import app
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


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(np.arange(3000)),
            "text": pa.array([f"some words and {i}" for i in range(3000)]),
            "point": pa.array([{"x": i, "tags": [f"t{i}"] * (i % 3)} for i in range(3000)]),
        }
    )


def encoding_of(name: str, version: str) -> str:
    column, metadata = sample_columns()[name]
    report = inspect_file(open_bytes(lance_file(column, version, metadata)))
    (first, *_) = report.columns[-1].encodings
    return first


@pytest.mark.parametrize(
    ("name", "version", "encoding"),
    [
        ("int64 sequential", "2.2", "mini-block bitpacking64"),
        ("string", "2.2", "mini-block fsst(variable)"),
        ("string long nulls", "2.2", "full-zip fsst(variable) [NI]"),
        ("string few", "2.2", "mini-block dictionary(7 x lz4(variable), bitpacking32)"),
        ("string few", "2.0", "dictionary(7 x binary(flat8), flat8)"),
        ("constant", "2.2", "constant 0x0000000000000007"),
        ("all null", "2.1", "constant [NI]"),
        ("list of 128 float32", "2.2", "full-zip list128(flat32)"),
        ("list of 128 float32", "2.0", "list128(flat32)"),
        ("packed struct", "2.1", "mini-block packed(64, 32)"),
        ("int64 nulls", "2.0", "nullable(flat64)"),
    ],
)
def test_encodings_are_named_as_people_read_them(name: str, version: str, encoding: str) -> None:
    assert encoding_of(name, version) == encoding


@pytest.mark.parametrize("version", VERSIONS)
def test_every_sample_is_described_and_its_bytes_fit_into_the_file(version: str) -> None:
    for name, (column, metadata) in sample_columns().items():
        if not_written(name, version):
            continue
        data = lance_file(column.slice(0, 100), version, metadata)
        report = inspect_file(open_bytes(data), has_ratios=False)
        assert sum(column.num_bytes for column in report.columns) <= report.size == len(data)
        assert "unknown" not in str(report.to_dict())


def test_fields_are_compared_with_their_arrow_memory() -> None:
    report = inspect_file(open_bytes(lance_table(table(), "2.2", page_rows=1000)))
    assert [column.path for column in report.columns] == [
        "id",
        "text",
        "point.x",
        "point.tags.item",
    ]
    assert [len(column.pages) for column in report.columns] == [3, 3, 3, 3]
    assert [field.name for field in report.fields] == ["id", "text", "point"]
    assert report.fields[0].arrow_bytes == 24_000
    assert report.fields[0].ratio == report.fields[0].num_bytes / 24_000
    by_field = {field.name: field.num_bytes for field in report.fields}
    assert by_field["point"] == sum(column.num_bytes for column in report.columns[2:])


def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    path.write_bytes(lance_table(table(), "2.1"))
    shown = CliRunner().invoke(app, ["inspect", str(path)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    for words in ("version 2.1", "3,000 rows", "mini-block fsst(variable)", "point.tags.item"):
        assert words in shown.output
    printed = CliRunner().invoke(app, ["inspect", str(path), "--json", "--no-ratios"])
    report = orjson.loads(printed.output)
    assert report["num_rows"] == 3000
    assert report["fields"][0]["arrow_bytes"] is None
    assert report["columns"][1]["pages"][0]["num_rows"] == 3000


def test_the_command_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.lance").write_bytes(b"no lance file at all, but long enough to be one")
    for name, words in (("a.lance", "LANC"), ("missing.lance", "no object")):
        shown = CliRunner().invoke(app, ["inspect", str(tmp_path / name)], env={"COLUMNS": "500"})
        assert shown.exit_code == 1
        assert words in shown.output
