"""Each Arrow type that a file can hold: ingested and read back by pylance, or refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from pipeline.errors import StageFailedError
from pipeline.ingest import Vectors, ingest_files
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Place
from tests.pipeline_stages import local_context

DAY = dt.date(2026, 11, 28)
TIME = dt.time(1, 2, 3)
MOMENT = dt.datetime(2026, 11, 28, 1, 2, 3)  # noqa: DTZ001 - a time without a zone
SPAN = dt.timedelta(days=1, seconds=2)

STORED = [
    *((kind, [1, None, 0]) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((kind, [1, None, 255]) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
    (pa.uint64(), [2**64 - 1, None, 0]),
    (pa.float16(), [np.float16(1.5), None, np.float16(0)]),
    (pa.float32(), [1.5, None, 0.0]),
    (pa.float64(), [0.1, None, -0.0]),
    (pa.bool_(), [True, None, False]),
    (pa.null(), [None] * 3),
    *((kind, ["a", None, "ü" * 40]) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, [b"a", None, b""]) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(3), [b"abc", None, b"\0\0\0"]),
    (pa.date32(), [DAY, None, DAY]),
    (pa.date64(), [DAY, None, DAY]),
    *((kind, [TIME, None, TIME]) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))),
    (pa.time64("ns"), [TIME, None, TIME]),
    *((pa.timestamp(unit), [MOMENT, None, MOMENT]) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", "UTC"), [MOMENT, None, MOMENT]),
    (pa.timestamp("us", "Europe/Paris"), [MOMENT, None, MOMENT]),
    *((pa.duration(unit), [SPAN, None, SPAN]) for unit in ("s", "ms", "us", "ns")),
    (pa.decimal128(10, 2), [Decimal("1.25"), None, Decimal(0)]),
    (pa.decimal256(40, 3), [Decimal("1.125"), None, Decimal(0)]),
    (pa.list_(pa.int32()), [[1, None], None, []]),
    (pa.large_list(pa.string()), [["a"], None, []]),
    (pa.list_(pa.list_(pa.float64())), [[[1.0], []], None, []]),
    (pa.list_(pa.float32(), 2), [[1.0, 2.0], None, [3.0, 4.0]]),
    (pa.list_(pa.float16(), 2), [[np.float16(1), np.float16(2)], None, [np.float16(0)] * 2]),
    (pa.list_(pa.uint8(), 2), [[1, 2], None, [3, 4]]),
    (
        pa.struct({"a": pa.int32(), "b": pa.string()}),
        [{"a": 1, "b": "x"}, None, {"a": None, "b": ""}],
    ),
    (pa.map_(pa.string(), pa.int32()), [[("k", 1)], None, []]),
    (pa.list_(pa.struct({"a": pa.int32()})), [[{"a": 1}], None, []]),
    (pa.dictionary(pa.int32(), pa.string()), ["a", None, "a"]),
    (pa.json_(), ['{"a":1}', None, "[]"]),
    (pa.uuid(), [bytes(range(16)), None, bytes(16)]),
    (pa.bool8(), [1, None, 0]),
]

REFUSED = [
    (pa.month_day_nano_interval(), [(1, 2, 3), None, (0, 0, 0)]),
    (pa.list_view(pa.int32()), [[1], None, []]),
    (pa.large_list_view(pa.int32()), [[1], None, []]),
    (pa.decimal32(5, 2), [Decimal("1.25"), None, None]),
    (pa.decimal64(12, 2), [Decimal("1.25"), None, None]),
    (pa.run_end_encoded(pa.int32(), pa.int64()), [1, 1, 2]),
    (pa.list_(pa.string(), 2), [["a", "b"], None, ["c", "d"]]),
]


def cases(types):
    return [pytest.param(kind, values, id=str(kind)) for kind, values in types]


def written(folder, array, form):
    """Write the array as a file of a format that can hold it; return whether it can."""
    table = pa.table({"x": array})
    try:
        if form == "parquet":
            pq.write_table(table, folder / "a.parquet")
        else:
            with pa.ipc.new_file(folder / "a.arrow", table.schema) as writer:
                writer.write_table(table)
    except pa.ArrowNotImplementedError:
        return False
    return True


def ingested(tmp_path, file):
    context = local_context(tmp_path / "a.lance")
    ingest_files(context, Sources((str(file),)), Place(context.uri))
    return lance.dataset(context.uri).to_table()["x"]


def plain(kind):
    """Return a type as tables have it: without views."""
    names = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return names.get(kind, kind)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize(("kind", "values"), cases(STORED))
def test_a_type_is_stored_as_the_file_has_it(tmp_path, kind, values, form):
    array = pa.array(values, kind)
    assert written(tmp_path, array, form)
    (file,) = tmp_path.iterdir()
    had = pq.read_table(file)["x"] if form == "parquet" else array
    found = ingested(tmp_path, file)
    assert found.type == plain(had.type)
    assert found.to_pylist() == had.to_pylist()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize(("kind", "values"), cases(REFUSED))
def test_a_type_that_cannot_be_stored_is_refused_by_its_name(tmp_path, kind, values, form):
    if not written(tmp_path, pa.array(values, kind), form):
        assert form == "parquet"
        return
    (file,) = tmp_path.iterdir()
    if form == "parquet" and pq.read_schema(file).field("x").type != kind:
        assert len(ingested(tmp_path, file)) == 3
        return
    with pytest.raises(UnsupportedFeatureError, match="column 'x'"):
        ingested(tmp_path, file)
    assert not (tmp_path / "a.lance").exists()


def typed(tmp_path, files, **types):
    """Ingest some files whose columns are to become certain types."""
    uri = str(tmp_path / "typed.lance")
    sources = Sources(tuple(map(str, files)), types=types)
    ingest_files(local_context(uri), sources, Place(uri))
    return lance.dataset(uri).to_table()


DECLARED = [
    (pa.date32(), '"2026-11-28"', DAY),
    (pa.time64("us"), '"01:02:03.5"', dt.time(1, 2, 3, 500_000)),
    (pa.time32("s"), '"01:02:03"', TIME),
    (pa.timestamp("us"), '"2026-11-28 01:02:03"', MOMENT),
    (pa.float16(), "1.5", 1.5),
    (pa.int8(), "7", 7),
    (pa.string(), "7", "7"),
    (pa.string(), "true", "true"),
    (pa.string(), '"a"', "a"),
]


@pytest.mark.parametrize(("kind", "text", "value"), DECLARED, ids=str)
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_text_becomes_what_a_column_is_declared_to_be(tmp_path, kind, text, value, form):
    file = tmp_path / f"rows.{form}"
    lines = [f'{{"x": {text}}}', '{"x": null}'] if form == "jsonl" else ["x,y", f"{text},1", ",2"]
    file.write_text("\n".join(lines) + "\n")
    found = typed(tmp_path, [file], x=kind)["x"]
    assert found.type == kind
    assert found.to_pylist() == [value, None]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_of_several_types_go_together_as_declared(tmp_path, form):
    files = [tmp_path / f"{number}.{form}" for number in range(2)]
    for file, values in zip(files, ([1, None], ["a", "b"]), strict=True):
        table = pa.table({"x": values})
        if form == "parquet":
            pq.write_table(table, file)
        else:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    with pytest.raises(InvalidRequestError, match="do not go together"):
        typed(tmp_path, files)
    assert typed(tmp_path, files, x=pa.string())["x"].to_pylist() == ["1", None, "a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Empty CSV file$"),
        ("x\n1,2\n", "Expected 1 columns, got 2: 1,2$"),
        ("x,x\n1,2\n", 'rows.csv has several columns "x"; name them apart'),
    ],
)
def test_types_are_advised_only_where_they_help(tmp_path, text, message):
    file = tmp_path / "rows.csv"
    file.write_text(text)
    with pytest.raises(InvalidRequestError, match=message):
        typed(tmp_path, [file])
    file.write_text("x\n" + "1\n" * 1_000_000 + "a\n")
    with pytest.raises(StageFailedError, match="give the type of the column by --type"):
        typed(tmp_path, [file])


def test_a_dimension_of_no_column_is_refused():
    with pytest.raises(InvalidRequestError, match="name their columns by --vector-column"):
        Vectors(dimension=3)
