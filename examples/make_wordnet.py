"""Write the dataset that ``make demo`` serves: 8,000 WordNet entries with sentence embeddings.

Run with the development environment, which has pylance; the result is committed, so nobody needs
to run this::

    .venv/bin/python examples/make_wordnet.py wordnet_minilm384_20k.parquet

The dataset is made to look like one in use: an index over its first 6,000 rows, 2,000 rows that
were appended later and are not indexed yet, and 200 rows deleted from both parts. Beside it goes
the body of an example request: the entries nearest to "piste: a ski run densely packed with snow".
"""

from __future__ import annotations

import argparse
import shutil
from datetime import timedelta
from pathlib import Path

import lance
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).parent / "data" / "wordnet.lance"
QUERY = Path(__file__).parent / "query.json"
QUERY_ROW = 1_896
NUM_INDEXED, NUM_APPENDED, NUM_DELETED = 6_000, 2_000, 200
NUM_PARTITIONS, NUM_SUB_VECTORS = 20, 96
DIMENSION = 384
SEED = 20_261_127


def read_rows(parquet: Path, num_rows: int) -> pa.Table:
    """Return the first rows of the sample, its float16 vectors as float32."""
    table = pq.read_table(parquet).slice(0, num_rows)
    position = table.schema.get_field_index("vector")
    halves = table.column("vector").combine_chunks().flatten().to_numpy()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(halves.astype(np.float32)), DIMENSION)
    return table.set_column(position, "vector", vectors).replace_schema_metadata(None)


def write_dataset(rows: pa.Table, target: Path) -> lance.LanceDataset:
    """Write, index, append and delete; keep the files of the newest version only."""
    dataset = lance.write_dataset(rows.slice(0, NUM_INDEXED), str(target))
    dataset.create_index(
        "vector",
        "IVF_PQ",
        metric="cosine",
        num_partitions=NUM_PARTITIONS,
        num_sub_vectors=NUM_SUB_VECTORS,
    )
    dataset = lance.write_dataset(rows.slice(NUM_INDEXED), str(target), mode="append")
    generator = np.random.default_rng(SEED)
    deleted = np.sort(generator.choice(len(rows), NUM_DELETED, replace=False))
    dataset.delete(f"id IN ({', '.join(str(row) for row in deleted)})")
    dataset.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    return dataset


def write_query(rows: pa.Table, target: Path) -> None:
    """Write a request body that asks for the rows nearest to the one with id ``QUERY_ROW``."""
    vector = rows.column("vector")[QUERY_ROW].values.to_numpy()
    body = {"vector": vector, "k": 5, "columns": ["id", "title", "text"], "refine_factor": 5}
    target.write_bytes(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")


def main() -> None:
    """Write the dataset anew and say what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parquet", type=Path, help="the WordNet sample with float16 vectors")
    parser.add_argument("--target", type=Path, default=TARGET, help="dataset to write")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.target, ignore_errors=True)
    rows = read_rows(arguments.parquet, NUM_INDEXED + NUM_APPENDED)
    write_query(rows, QUERY)
    dataset = write_dataset(rows, arguments.target)
    size = sum(path.stat().st_size for path in arguments.target.rglob("*") if path.is_file())
    print(f"{arguments.target}: version {dataset.version}, {dataset.count_rows():,} rows")
    print(f"{size / 1e6:.1f} MB, indices: {[index.name for index in dataset.describe_indices()]}")


if __name__ == "__main__":
    main()
