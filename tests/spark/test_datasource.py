"""Datasets as tables of Spark: it reads what pylance wrote, and pylance reads what it wrote."""

from __future__ import annotations

import math

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

import pipeline
from pipeline.readable import readable, readable_schema
from tests.same_values import assert_same
from tests.spark_columns import COLUMNS
from tests.spark_sources import FailingSource
from tests.verified import verified

_HIDES = "spark.sql.execution.pyspark.udf.hideTraceback.enabled"


@pytest.fixture(scope="module")
def source(spark):
    pipeline.register(spark)
    spark.dataSource.register(FailingSource)
    return spark


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables") / "t.lance"
    generator = np.random.default_rng(2)
    vectors = generator.standard_normal((600, 8)).astype(np.float32)
    table = pa.table(
        {
            "id": np.arange(600),
            "u": np.arange(600, dtype=np.uint64) + np.uint64(2**63),
            "name": generator.choice(["a", "b", "ü"], 600),
            "x": pa.array([math.nan if i % 50 == 0 else i / 7 for i in range(600)]),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
        }
    )
    lance.write_dataset(table, str(folder), max_rows_per_file=100)
    lance.dataset(str(folder)).delete("id % 9 = 0")
    return folder


def load(source, path, **options):
    return source.read.format("lance_py").options(**options).load(str(path))


def ids(rows):
    return sorted(each.id for each in rows.select("id").collect())


def test_all_types_go_through_spark_and_back(source, tmp_path):
    names = [name for name in COLUMNS if name != "null"]
    table = pa.table({f"c{n}": COLUMNS[name] for n, name in enumerate(names)})
    first, second = tmp_path / "a.lance", tmp_path / "b.lance"
    lance.write_dataset(table, str(first), data_storage_version="2.2")
    rows = load(source, first)
    found = rows.toArrow()
    wanted = readable(table.to_batches()[0], readable_schema(table.schema))
    for name in table.column_names:
        assert_same(found[name].combine_chunks().cast(wanted[name].type), wanted[name], name)
    rows.write.format("lance_py").mode("append").save(str(second))
    once = lance.dataset(str(first)).to_table()
    twice = lance.dataset(str(second)).to_table()
    for name in table.column_names:
        kind = once[name].type
        if pa.types.is_nested(kind) and not pa.types.is_fixed_size_list(kind):
            assert twice[name].to_pylist() == once[name].to_pylist()  # parts have Spark's types
        else:
            assert_same(twice[name].combine_chunks(), once[name].combine_chunks(), name)
    assert verified(second) == []


def test_filters_are_judged_by_the_dataset_and_mean_what_they_mean_to_spark(source, path):
    rows = load(source, path, columns="id,u,name,x", partitionRows="150")
    plain = rows.toArrow().to_pandas()  # judged by nobody
    asked = {  # the meaning of each kind of filter is tested without Spark
        "id > 100 AND id <= 250 AND NOT (name = 'a')": (plain.id > 100)
        & (plain.id <= 250)
        & (plain.name != "a"),
        "u >= 9223372036854775908 AND x > 80": (plain.id >= 100)
        & ((plain.x > 80) | plain.x.isna()),
        "id = 3 OR name LIKE 'ü%'": (plain.id == 3) | (plain.name == "ü"),
    }
    for text, wanted in asked.items():  # each by a frame of its own, as the option demands
        own = load(source, path, columns="id,u,name,x", partitionRows="150", pushFilters="true")
        assert ids(own.where(text)) == sorted(plain.id[wanted]), text
    own = load(source, path, pushFilters="true").where("id > 100")
    assert "Filter (" not in own._jdf.queryExecution().executedPlan().toString()
    assert ids(load(source, path, filter="id < 20")) == [i for i in range(20) if i % 9]


def test_a_frame_that_many_queries_use_has_all_its_rows_for_each(source, path):
    rows = load(source, path, columns="id")
    first, last = rows.where("id < 10"), rows.where("id >= 595")
    assert ids(first) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rows.count() == 533  # with filters handed down Spark would find eight
    assert ids(first.union(last)) == [1, 2, 3, 4, 5, 6, 7, 8, 595, 596, 597, 598, 599]


def test_rows_are_counted_without_reading_columns(source, path):
    rows = load(source, path, columns="_rowid", version="1")
    assert rows.count() == 600
    assert load(source, path, columns="_rowid").count() == 533


def test_sql_makes_reads_and_fills_tables(source, path, tmp_path):
    source.sql(f"CREATE TABLE some USING lance_py OPTIONS (path '{path}')")
    place = tmp_path / "new.lance"
    try:
        found = source.sql("SELECT count(id) AS n, max(u) AS u FROM some WHERE id < 100").first()
        assert (found.n, int(found.u)) == (88, 2**63 + 98)
        rows = source.sql("SELECT id, v FROM some WHERE name = 'a'")
        rows.write.format("lance_py").option("vectors", "v=8").mode("overwrite").save(str(place))
        source.sql(f"CREATE TABLE others USING lance_py OPTIONS (path '{place}')")
        rest = f"WITH (path = '{place}') SELECT id, v FROM some WHERE name = 'b'"  # noqa: S608
        source.sql("INSERT INTO others " + rest)
        with pytest.raises(Exception, match="WITH"):  # not into what the rows were read from
            source.sql("INSERT INTO others SELECT id, v FROM some")
        assert source.sql("SELECT count(id) AS n FROM some WITH (version = '1')").first().n == 600
        dataset = lance.dataset(str(place))
        wanted = lance.dataset(str(path)).to_table(["id", "v"], filter="name IN ('a', 'b')")
        assert dataset.schema.field("v").type == pa.list_(pa.float32(), 8)
        assert dataset.to_table().sort_by("id").equals(wanted.sort_by("id"))
        assert dataset.version == 2
    finally:
        source.sql("DROP TABLE IF EXISTS some")
        source.sql("DROP TABLE IF EXISTS others")


def numbers(source, count=80):
    return source.range(0, count, 1, 4).withColumn("name", sf.col("id").cast("string"))


@pytest.mark.parametrize("fault", ["task once", "task always", "commit after its effect"])
def test_each_row_is_there_once_whatever_fails(source, tmp_path, fault):
    place = tmp_path / "t.lance"
    numbers(source, 10).write.format("lance_py").mode("append").save(str(place))
    writer = numbers(source).write.format("failing_lance_py").mode("append")
    writer = writer.option("fault", fault).option("marks", str(tmp_path)).option("jobId", "nightly")
    if fault == "task once":
        writer.save(str(place))
    else:
        with pytest.raises(Exception, match="it burnt down"):
            writer.save(str(place))
    found = lance.dataset(str(place)).count_rows()
    assert found == (10 if fault == "task always" else 90)
    numbers(source).write.format("lance_py").mode("append").option("jobId", "nightly").save(
        str(place)
    )
    rows = lance.dataset(str(place)).to_table()["id"].to_pylist()
    assert sorted(rows) == sorted([*range(10), *range(80)])
    assert lance.dataset(str(place)).version == 2
    assert verified(place) == []


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"version": "9"}, "there is no version 9"),
        ({"tag": "none"}, 'there is no tag "none"'),
        ({"branch": "none"}, 'there is no branch "none"'),
        ({"version": "x"}, "version is 'x'; give a number"),
    ],
)
def test_what_is_not_there_is_told_in_a_line_where_tracebacks_are_hidden(source, path, asked, told):
    source.conf.set(_HIDES, "true")
    try:
        with pytest.raises(AnalysisException) as caught:
            load(source, path, **asked)
    finally:
        source.conf.unset(_HIDES)
    assert told in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(
    "option", ["version", "branch", "tag", "columns", "filter", "partitionRows"]
)
def test_a_write_refuses_what_only_reads_take(source, tmp_path, option):
    writer = numbers(source).write.format("lance_py").mode("append").option(option, "1")
    with pytest.raises(Exception, match=f"{option.lower()}: for reading only"):
        writer.save(str(tmp_path / "t.lance"))
    assert not (tmp_path / "t.lance").exists()


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("array()", "column 'm' is array<void>"),
        ("map()", "column 'm' is map<void,void>"),
        ("interval '1' month", "column 'm' is interval month"),
        ("array(parse_json('{}'))", "column 'm' of variant"),
    ],
)
def test_a_column_that_no_dataset_holds_is_named(source, tmp_path, column, told):
    rows = source.sql(f"select 1 as a, {column} as m")
    with pytest.raises(Exception, match=told):
        rows.write.format("lance_py").mode("append").save(str(tmp_path / "t.lance"))


def test_a_table_whose_path_spark_forgets_says_how_to_make_it(source, tmp_path):
    options = f"USING lance_py OPTIONS (path '{tmp_path / 't.lance'}')"
    with pytest.raises(Exception, match="write the dataset first, then CREATE TABLE"):
        source.sql(f"CREATE TABLE made {options} AS SELECT 1 AS a")
    source.sql("DROP TABLE IF EXISTS made")
