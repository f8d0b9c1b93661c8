"""Build the measured datasets once with pylance and keep them outside the repository.

One folder per set holds the queries, their exact neighbours, and a dataset per index type: the same
data files, hard linked, with one index each, built when it is first asked for.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.synthetic import draw, exact_neighbours, make_mixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SEED = 20_261_127
NUM_QUERIES = 1_000
NEIGHBOURS_KEPT = 10
NUM_APPENDED = 100_000
RECIPE = 2  # raise when the recipe below changes, so that no cached set is mistaken for a new one


PLAIN = "plain"
WORDNET_VARIABLE = "BENCH_WORDNET"


@dataclass(frozen=True, slots=True)
class Size:
    """How large one set is; ``num_probes`` is what its headline case searches.

    Graphs are searched in few large partitions: ``graph_probes`` of ``graph_partitions``.
    """

    name: str
    num_rows: int
    num_partitions: int
    num_probes: int
    graph_partitions: int
    graph_probes: int
    dimension: int = 128
    num_centres: int = 1_000
    num_sub_vectors: int = 16


SIZES = {
    size.name: size
    for size in (
        Size("20k", 20_000, 20, 8, graph_partitions=2, graph_probes=1),
        Size("200k", 200_000, 200, 24, graph_partitions=8, graph_probes=3),
        Size("1m", 1_000_000, 1_000, 64, graph_partitions=32, graph_probes=8),
        Size(
            "wordnet",
            19_500,
            140,  # as of the other sets, about the root of the rows; and probed as they are
            64,
            graph_partitions=1,
            graph_probes=1,
            dimension=384,
            num_sub_vectors=48,
        ),
    )
}

INDEX_TYPES = {
    "ivf_flat": "IVF_FLAT",
    "ivf_pq": "IVF_PQ",
    "ivf_sq": "IVF_SQ",
    "ivf_rq": "IVF_RQ",
    "ivf_hnsw_sq": "IVF_HNSW_SQ",
    "ivf_pq_appended": "IVF_PQ",
}


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkSet:
    """A built set: ``queries`` ``(m, d)`` and ``neighbours`` ``(m, 10)``, which are row ids."""

    size: Size
    root: Path
    queries: NDArray[np.float32]
    neighbours: NDArray[np.int64]

    def dataset(self, name: str) -> Path:
        """Return the path of the dataset with an index of ``INDEX_TYPES``, building it if needed.

        ``ivf_pq_appended`` has 100,000 rows more that its index does not cover.
        """
        path = self.root / f"{name}.lance"
        if not path.exists():
            _build_index(self, name, path)
        return path


def cache_root() -> Path:
    """Return the folder for built sets, outside the repository."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path.home() / ".cache" if base is None else Path(base)) / "lance-serve-bench"


def open_set(size: Size) -> BenchmarkSet:
    """Return the set of that size, building it when the cache has none of this recipe."""
    root = cache_root() / size.name
    stamp = root / "recipe.json"
    recipe = orjson.dumps({"recipe": RECIPE, "seed": SEED, **asdict(size)})
    if not stamp.exists() or stamp.read_bytes() != recipe:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        _build(size, root)
        stamp.write_bytes(recipe)
    return BenchmarkSet(size, root, np.load(root / "queries.npy"), np.load(root / "neighbours.npy"))


def _build(size: Size, root: Path) -> None:
    generator = np.random.default_rng(SEED)
    print(f"drawing {size.num_rows:,} x {size.dimension} vectors", flush=True)
    vectors, queries = _draw(size, generator)
    np.save(root / "queries.npy", queries)
    print("finding the exact neighbours of the queries", flush=True)
    np.save(root / "neighbours.npy", exact_neighbours(vectors, queries, NEIGHBOURS_KEPT))
    uniform = generator.integers(0, 1_000_000, size.num_rows, dtype=np.int64)
    # Named so that servers do not take it for a dataset to serve.
    lance.write_dataset(
        _batches(vectors, uniform), str(root / PLAIN), schema=_schema(size.dimension)
    )


def _draw(
    size: Size, generator: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the vectors of a set and its queries, which are none of them."""
    if size.name == "wordnet":
        shuffled = generator.permutation(_wordnet_vectors())
        return shuffled[: size.num_rows], shuffled[size.num_rows :]
    mixture = make_mixture(size.dimension, size.num_centres, generator)
    vectors = draw(mixture, size.num_rows, generator)
    return vectors, draw(mixture, NUM_QUERIES, generator)


def _wordnet_vectors() -> NDArray[np.float32]:
    given = os.environ.get(WORDNET_VARIABLE)
    if given is None:
        raise SystemExit(
            f"set {WORDNET_VARIABLE} to a Parquet file of 20,000 entries with 384-dimensional"
            ' vectors in its column "vector", as examples/make_wordnet.py takes it'
        )
    column = pq.read_table(given, columns=["vector"]).column("vector").combine_chunks()
    flat: NDArray[np.float32] = column.flatten().to_numpy().astype(np.float32)
    return flat.reshape(len(column), -1)


def _build_index(bench: BenchmarkSet, name: str, path: Path) -> None:
    size = bench.size
    kind = INDEX_TYPES[name]
    num_partitions = size.graph_partitions if "HNSW" in kind else size.num_partitions
    print(f"building {name} with {num_partitions} partitions", flush=True)
    unfinished = path.with_suffix(".building")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(bench.root / PLAIN, unfinished, copy_function=os.link)
    dataset = lance.dataset(str(unfinished))
    dataset.create_index(
        "vector",
        kind,
        metric="l2",
        num_partitions=num_partitions,
        num_sub_vectors=size.num_sub_vectors if kind == "IVF_PQ" else None,
    )
    if name == "ivf_pq_appended":
        rows = dataset.to_table(limit=min(NUM_APPENDED, size.num_rows))
        lance.write_dataset(rows, str(unfinished), mode="append")
    unfinished.rename(path)


def _schema(dimension: int) -> pa.Schema:
    return pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("u", pa.int64()),
            pa.field("vector", pa.list_(pa.float32(), dimension)),
        ]
    )


def _batches(
    vectors: NDArray[np.float32], uniform: NDArray[np.int64], batch_rows: int = 100_000
) -> Iterator[pa.RecordBatch]:
    num_rows, dimension = vectors.shape
    schema = _schema(dimension)
    for start in range(0, num_rows, batch_rows):
        part = vectors[start : start + batch_rows]
        rows = np.arange(start, start + len(part), dtype=np.int64)
        column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), dimension)
        yield pa.record_batch(
            [pa.array(rows), pa.array(uniform[start : start + len(part)]), column], schema=schema
        )
