"""Rows ordered by their values while they are ingested, read back by pylance."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from pipeline.cluster import ranges_of
from pipeline.convert import OnBadVector
from pipeline.ingest import Vectors, ingest_files
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Place
from tests.pipeline_crashes import DriverDiedError
from tests.pipeline_stages import LocalStages, local_context

ROWS, DIM = 1000, 3


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "rows"
    place.mkdir()
    rng = np.random.default_rng(7)
    names = np.array([*"abcdefgh", None], object)
    table = pa.table(
        {
            "id": rng.permutation(ROWS),
            "name": pa.array(rng.choice(names, ROWS), pa.string()),
            "x": pa.array(np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(size=ROWS))),
            "v": list(rng.random((ROWS, DIM), np.float32)),
        }
    )
    for number in range(4):
        pq.write_table(table.slice(number * 250, 250), place / f"{number}.parquet")
    return place


def ingested(folder, columns, *, stages=None, task_rows=100, on_bad=OnBadVector.ERROR):
    context = local_context(folder.parent / "a.lance", job_id="job", stages=stages)
    ingest_files(
        context,
        Sources((str(folder),)),
        Place(context.uri),
        vectors=Vectors(("v",), DIM, on_bad),
        task_rows=task_rows,
        cluster_by=columns,
    )
    return lance.dataset(context.uri)


def rows_of(folder):
    return pa.concat_tables(map(pq.read_table, sorted(folder.iterdir())))


def told(table):
    """Return rows as texts, in which NaN equals NaN."""
    return list(map(repr, table.to_pylist()))


@pytest.mark.parametrize("columns", [["id"], ["name", "id"], ["x", "id"]], ids=str)
def test_rows_are_in_the_order_of_the_columns_over_all_fragments(folder, columns):
    dataset = ingested(folder, columns)
    expected = rows_of(folder).sort_by([(name, "ascending") for name in columns])
    assert told(dataset.to_table()) == told(expected)
    assert len(dataset.get_fragments()) >= 8
    assert dataset.version == 1
    left = [path.name for path in Path(folder.parent, ".a.lance.pipeline").rglob("*.arrow")]
    assert left == []


def test_ranges_hold_about_as_many_rows_as_asked_for(folder):
    dataset = ingested(folder, ["id"])
    counts = [each.count_rows() for each in dataset.get_fragments()]
    assert len(counts) == 10
    assert max(counts) < 150


def test_a_job_that_died_between_its_stages_goes_on(folder):
    class Dies(LocalStages):
        def run(self, name, items, worker, *, weights=None):
            if name == "ingest":
                raise DriverDiedError
            return super().run(name, items, worker, weights=weights)

    with pytest.raises(DriverDiedError):
        ingested(folder, ["id"], stages=Dies())
    stages = LocalStages()
    dataset = ingested(folder, ["id"], stages=stages)
    assert [name for name, _ in stages.ran] == ["ingest"]
    assert dataset.to_table()["id"].to_pylist() == list(range(ROWS))


def test_rows_that_are_left_out_are_so_before_they_are_ordered(folder):
    bad = pa.table({"id": [-1], "v": [[1.0]]})
    pq.write_table(bad, folder / "bad.parquet")
    dataset = ingested(folder, ["id"], on_bad=OnBadVector.DROP)
    assert dataset.to_table()["id"].to_pylist() == list(range(ROWS))


def test_no_rows_make_an_empty_dataset(tmp_path):
    folder = tmp_path / "none"
    folder.mkdir()
    table = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.list_(pa.float32()))})
    pq.write_table(table, folder / "a.parquet")
    assert ingested(folder, ["id"]).count_rows() == 0


def test_columns_that_are_not_there_or_have_no_order_are_refused(folder):
    with pytest.raises(UnknownColumnError, match='"w" in the columns to cluster by'):
        ingested(folder, ["w"])
    with pytest.raises(TypeMismatchError, match="has no order"):
        ingested(folder, ["v"])
    with pytest.raises(InvalidRequestError, match='"id" to cluster by is given twice'):
        ingested(folder, ["id", "id"])


@given(
    st.lists(st.none() | st.integers(-5, 5)), st.lists(st.integers(-5, 5), unique=True).map(sorted)
)
def test_the_range_of_a_value_is_the_number_of_bounds_not_above_it(values, bounds):
    found = ranges_of(pa.array(values, pa.int8()), pa.array(bounds, pa.int8()))
    expected = [sum(b <= (99 if v is None else v) for b in bounds) for v in values]
    assert found.tolist() == expected
