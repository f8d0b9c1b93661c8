"""Build the measured datasets once with pylance and keep them outside the repository.

One folder per size holds ``ivf_pq.lance`` and ``ivf_flat.lance`` (the same data files, hard
linked, with one index each), the queries and their exact neighbours.
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

from benchmarks.synthetic import draw, exact_neighbours, make_mixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SEED = 20_261_127
NUM_QUERIES = 1_000
NEIGHBOURS_KEPT = 10
RECIPE = 1  # raise when the recipe below changes, so that no cached set is mistaken for a new one


@dataclass(frozen=True, slots=True)
class Size:
    """How large one set is; ``num_probes`` is what its headline case searches."""

    name: str
    num_rows: int
    num_partitions: int
    num_probes: int
    dimension: int = 128
    num_centres: int = 1_000
    num_sub_vectors: int = 16


SIZES = {
    size.name: size
    for size in (
        Size("20k", num_rows=20_000, num_partitions=20, num_probes=8),
        Size("200k", num_rows=200_000, num_partitions=200, num_probes=24),
        Size("1m", num_rows=1_000_000, num_partitions=1_000, num_probes=64),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkSet:
    """A built set: ``queries`` ``(m, d)`` and ``neighbours`` ``(m, 10)``, which are row ids."""

    size: Size
    root: Path
    queries: NDArray[np.float32]
    neighbours: NDArray[np.int64]

    def dataset(self, name: str) -> Path:
        """Return the path of ``ivf_pq`` or ``ivf_flat``."""
        return self.root / f"{name}.lance"


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
    mixture = make_mixture(size.dimension, size.num_centres, generator)
    print(f"drawing {size.num_rows:,} x {size.dimension} vectors", flush=True)
    vectors = draw(mixture, size.num_rows, generator)
    queries = draw(mixture, NUM_QUERIES, generator)
    np.save(root / "queries.npy", queries)
    print("finding the exact neighbours of the queries", flush=True)
    np.save(root / "neighbours.npy", exact_neighbours(vectors, queries, NEIGHBOURS_KEPT))
    flat, pq = root / "ivf_flat.lance", root / "ivf_pq.lance"
    uniform = generator.integers(0, 1_000_000, size.num_rows, dtype=np.int64)
    lance.write_dataset(_batches(vectors, uniform), str(flat), schema=_schema(size.dimension))
    shutil.copytree(flat, pq, copy_function=os.link)
    for path, kind, num_sub_vectors in (
        (flat, "IVF_FLAT", None),
        (pq, "IVF_PQ", size.num_sub_vectors),
    ):
        print(f"building {kind} with {size.num_partitions} partitions", flush=True)
        lance.dataset(str(path)).create_index(
            "vector",
            kind,
            metric="l2",
            num_partitions=size.num_partitions,
            num_sub_vectors=num_sub_vectors,
        )


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
