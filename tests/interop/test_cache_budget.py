"""An index ten times the cache budget is searched within the budget, and rightly.

``CACHE_SECONDS=60 CACHE_ROWS=1000000`` makes the run long and the index large.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from tests.cache_budget import NUM_PROBES, K

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

DIMENSION = 64
NUM_PARTITIONS = 1_000
NUM_QUERIES = 200
MARGIN_BYTES = 300 << 20


def write_case(folder: Path, num_rows: int) -> None:
    """Write an index of 1,000 partitions of whole vectors, queries, and pylance's answers."""
    generator = np.random.default_rng(2)
    vectors = generator.standard_normal((num_rows, DIMENSION)).astype(np.float32)
    columns = {
        "id": np.arange(num_rows),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
    }
    dataset = lance.write_dataset(pa.table(columns), str(folder / "t.lance"))
    dataset.create_index(
        "v",
        "IVF_FLAT",
        num_partitions=NUM_PARTITIONS,
        ivf_centroids=vectors[:: num_rows // NUM_PARTITIONS][:NUM_PARTITIONS],
    )
    asked = generator.standard_normal((NUM_QUERIES, DIMENSION)).astype(np.float32)
    ids = [
        dataset.to_table(
            columns=["id", "_distance"],
            nearest={"column": "v", "q": each, "k": K, "nprobes": NUM_PROBES},
        )["id"].to_numpy()
        for each in asked
    ]
    np.save(folder / "queries.npy", asked)
    np.save(folder / "ids.npy", np.array(ids))


def test_memory_stays_within_the_budget_and_answers_stay_right(tmp_path: Path) -> None:
    write_case(tmp_path, int(os.environ.get("CACHE_ROWS", "40000")))
    seconds = os.environ.get("CACHE_SECONDS", "2")
    # Compiling takes much memory that a process does not give back: let another one do it.
    warm = [sys.executable, "-c", "from lance_core.kernels.warm import *; warm_kernels()"]
    subprocess.run(warm, check=True)  # noqa: S603
    command = [sys.executable, "-m", "tests.cache_budget", str(tmp_path), seconds]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    logging.getLogger(__name__).info("searched within a budget: %s", facts)
    assert facts["wrong"] == 0
    assert facts["queries"] > 20
    assert facts["evictions"] > 0
    assert facts["largest_cache"] <= facts["budget"]
    assert facts["largest_process"] <= facts["budget"] + MARGIN_BYTES
