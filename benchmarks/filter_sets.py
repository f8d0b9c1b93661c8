"""Datasets to filter, built on demand beside the sets of vectors: the same rows, other columns."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.datasets import BenchmarkSet

NUM_CATEGORIES = 1_000
UNIFORM_BELOW = 1_000_000
"""Upper end of the column ``u`` of all sets, which is uniform."""

_FOLDER = "filters"
_SEED = 7
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "flint", "grove", "heath", "iris", "jade")


def scanned(bench: BenchmarkSet) -> Path:
    """Return a dataset of plain columns without indices."""
    return _built(bench, "scanned", lambda path: _write_columns(bench, path))


def indexed(bench: BenchmarkSet) -> Path:
    """Return the same rows with a BTREE on ``u`` and a BITMAP on ``category``."""

    def build(path: Path) -> None:
        dataset = _linked(scanned(bench), path)
        dataset.create_scalar_index("u", "BTREE")
        dataset.create_scalar_index("category", "BITMAP")

    return _built(bench, "indexed", build)


def prefiltered(bench: BenchmarkSet) -> Path:
    """Return the vectors of a set with IVF_PQ and a BTREE on ``u``."""
    return _built(
        bench,
        "ivf_pq_btree",
        lambda path: _linked(bench.dataset("ivf_pq"), path).create_scalar_index("u", "BTREE"),
    )


def _built(bench: BenchmarkSet, name: str, build: Callable[[Path], object]) -> Path:
    path = bench.root / _FOLDER / f"{name}.lance"
    if not path.exists():
        print(f"building {name}", flush=True)
        unfinished = path.with_suffix(".building")
        shutil.rmtree(unfinished, ignore_errors=True)
        build(unfinished)
        unfinished.rename(path)
    return path


def _linked(source: Path, path: Path) -> lance.LanceDataset:
    shutil.copytree(source, path, copy_function=os.link)
    return lance.dataset(str(path))


def _write_columns(bench: BenchmarkSet, path: Path) -> None:
    generator = np.random.default_rng(_SEED)
    num_rows = bench.size.num_rows
    words = np.array(_WORDS)
    labels = words[generator.integers(len(words), size=(num_rows, 3))]
    numbers = np.arange(num_rows)
    names = [f"{' '.join(row)} {n}" for row, n in zip(labels.tolist(), numbers, strict=True)]
    categories = generator.integers(NUM_CATEGORIES, size=num_rows)
    table = pa.table(
        {
            "id": numbers,
            "u": generator.integers(UNIFORM_BELOW, size=num_rows),
            "category": [f"category {n}" for n in categories.tolist()],
            "price": generator.random(num_rows),
            "label": names,
        }
    )
    lance.write_dataset(table, str(path))
