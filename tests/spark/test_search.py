"""Batches of queries on Spark, over a table of pylance: each answer once, whatever failed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import search_plan
from pipeline.query_files import query_files
from pipeline.search import batch_search
from pipeline.search_output import ParquetOutput
from pipeline.search_work import BatchSearch
from tests.verified import verified

DIMENSION, NUM_QUERIES, K = 16, 90, 5


@dataclass(frozen=True, slots=True)
class FailingOutput(ParquetOutput):
    """Fails once, after the answers of a block were written."""

    mark: str = ""

    def write(self, block, table):
        told = ParquetOutput.write(self, block, table)
        if block == 1 and not Path(self.mark).exists():
            Path(self.mark).touch()
            raise RuntimeError("it burnt down")
        return told


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """An index over 3000 rows, 300 rows without one, and some deleted."""
    folder = tmp_path_factory.mktemp("search")
    generator = np.random.default_rng(6)
    vectors = generator.standard_normal((3300, DIMENSION)).astype(np.float32)
    rows = pa.table(
        {
            "id": np.arange(3300),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    path = folder / "t.lance"
    dataset = lance.write_dataset(rows.slice(0, 3000), str(path), max_rows_per_file=1000)
    dataset.create_index("v", "IVF_FLAT", num_partitions=8)
    lance.write_dataset(rows.slice(3000), str(path), mode="append")
    lance.dataset(str(path)).delete("id % 11 = 0")
    queries = vectors[:NUM_QUERIES] + 0.1
    pq.write_table(pa.table({"q": list(queries)}), folder / "queries.parquet")
    return path


@pytest.mark.parametrize("plan", ["A", "B"])
def test_answers_are_those_of_pylance_though_a_task_failed(
    table, tmp_path, spark_context, plan, monkeypatch
):
    monkeypatch.setattr(search_plan, "_WORTH", 20_000)  # some pieces, as of a large table
    out = FailingOutput(str(tmp_path / "out"), mark=str(tmp_path / "mark"))
    done = batch_search(
        spark_context(table),
        BatchSearch(k=K, nprobes=8, columns=("id",)),
        query_files(str(table.parent / "queries.parquet")),
        out,
        plan=plan,
        query_block=25,
    )
    assert (done.plan, done.num_queries) == (plan, NUM_QUERIES)
    assert (tmp_path / "mark").exists()
    found = pq.read_table(tmp_path / "out").sort_by(
        [("query_id", "ascending"), ("rank", "ascending")]
    )
    assert found.num_rows == NUM_QUERIES * K
    queries = pq.read_table(table.parent / "queries.parquet")["q"].to_pylist()
    dataset = lance.dataset(str(table))
    for number in range(0, NUM_QUERIES, 7):
        asked = {"column": "v", "q": queries[number], "k": K, "nprobes": 8}
        wanted = dataset.to_table(columns=["id", "_distance"], nearest=asked)
        own = found.slice(number * K, K)
        assert own["query_id"].unique().to_pylist() == [number]
        assert own["id"].to_pylist() == wanted["id"].to_pylist()
        assert np.allclose(own["_distance"], wanted["_distance"], rtol=1e-5)
    assert verified(table) == []
