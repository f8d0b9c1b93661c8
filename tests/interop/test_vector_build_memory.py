"""Builds of vector indices keep to the memory that they are given."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.index.vector.build.budget import LEAST_BYTES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION = 150_000, 128
_PROGRAM = """
import sys
from benchmarks.file_workers import peak_memory
from lance_core import open_dataset
from lance_core.kernels.warm import warm_kernels

path, kind, memory_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
warm_kernels()
dataset = open_dataset(path)
print(peak_memory(lambda: dataset.create_index(
    "v", kind, num_partitions=300, max_iters=2, memory_bytes=memory_bytes
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


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ"])
def test_the_least_memory_is_enough(path: Path, kind: str) -> None:
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _PROGRAM, str(path), kind, str(LEAST_BYTES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert 1 << 20 < int(ran.stdout) <= LEAST_BYTES
