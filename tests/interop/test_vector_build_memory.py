"""Builds of vector indices keep to the memory that they are given."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.index.vector.build.budget import LEAST_BYTES, LEAST_GRAPH_BYTES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION = 150_000, 128
_PROGRAM = """
import json
import sys
from benchmarks.file_workers import peak_memory
from lance_core import open_dataset
from lance_core.kernels.warm import warm_kernels

path, kind, memory_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
parameters = json.loads(sys.argv[4])
warm_kernels()
dataset = open_dataset(path)
print(peak_memory(lambda: dataset.create_index(
    "v", kind, max_iters=2, memory_bytes=memory_bytes, **parameters
)))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 77 MB of vectors."""
    numbers = np.random.default_rng(1).random(NUM_ROWS * DIMENSION, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), DIMENSION)
    path = tmp_path_factory.mktemp("build") / "t"
    lance_core.write_dataset(path, pa.table({"v": vectors}))
    return path


PLAIN: dict[str, int] = {"num_partitions": 300}
GRAPHS = {"num_partitions": 5, "ef_construction": 20}
LEAST = {
    "IVF_FLAT": LEAST_BYTES,
    "IVF_PQ": LEAST_BYTES,
    "IVF_SQ": LEAST_BYTES,
    "IVF_RQ": LEAST_BYTES,
    "IVF_HNSW_SQ": LEAST_GRAPH_BYTES,
}


@pytest.mark.parametrize("kind", LEAST)
def test_the_least_memory_is_enough(path: Path, kind: str) -> None:
    parameters = json.dumps(GRAPHS if "HNSW" in kind else PLAIN)
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _PROGRAM, str(path), kind, str(LEAST[kind]), parameters],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert 1 << 20 < int(ran.stdout) <= LEAST[kind]
