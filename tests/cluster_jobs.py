"""Jobs for a cluster whose processes are killed, and what must be there when they are done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lance_core.dataset import open_dataset, write_dataset
from lance_core.table.commits_since import Lineage
from lance_core.table.transaction import ReserveFragments
from pipeline.journal import Journal, default_state_uri
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lance_core.dataset import Dataset

NUM_ITEMS, ROWS, DIMENSION = 12, 4000, 32


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job on a dataset in a folder of its own.

    Parameters
    ----------
    prepare
        Writes what the job needs.
    arguments
        Of ``lance-pipeline``; files of rows, where there are any, come after them.
    version
        That the dataset has when the job is done, once.
    num_reserving
        How many of the job's versions only reserve ids.
    """

    name: str
    prepare: Callable[[Path], None]
    arguments: tuple[str, ...]
    version: int
    num_reserving: int = 0

    def command(self, folder: Path) -> tuple[str, ...]:
        """Return the whole command, the same for every run."""
        files = sorted(str(each) for each in folder.glob("*.parquet"))
        return (*self.arguments, "--uri", str(_uri(folder)), "--job-id", self.name, *files)

    def journal(self, folder: Path) -> Journal:
        """Return what is kept of the job."""
        return Journal.of(default_state_uri(str(_uri(folder))), self.name)

    def check(
        self, folder: Path, version: int | None = None, *, has_lost_drivers: bool = False
    ) -> None:
        """Compare with what must be there, as pylance reads it; None = the version of the job.

        A driver that dies with ids that it has reserved leaves them, and a version, unused.
        """
        uri = _uri(folder)
        dataset = lance.dataset(str(uri))
        wanted = self.version if version is None else version
        assert _num_changes(uri) == wanted - self.num_reserving
        assert has_lost_drivers or dataset.version == wanted
        ids = dataset.to_table(columns=["id"])["id"].to_numpy()
        assert np.array_equal(np.sort(ids), np.arange(NUM_ITEMS * ROWS))
        for number in (0, NUM_ITEMS - 1):
            query = rows(number)["vector"].chunk(0).flatten().to_numpy()[:DIMENSION]
            nearest = {"column": "vector", "q": query, "k": 1, "nprobes": 64, "refine_factor": 10}
            found = dataset.to_table(columns=["id", "_distance"], nearest=nearest)
            assert found["id"].to_pylist() == [number * ROWS]
        assert verified(uri) == []


def rows(number: int) -> pa.Table:
    """Return the rows of one item of a job."""
    values = np.random.default_rng(number).standard_normal(ROWS * DIMENSION).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSION)
    return pa.table({"id": np.arange(ROWS) + number * ROWS, "vector": vectors})


def _num_changes(uri: Path) -> int:
    """Return how many versions there are, but for those that only reserve ids."""
    lineage = Lineage(open_dataset(uri).snapshot.scheduler)
    lineage.refresh()
    operations = [each.transaction.operation for each in lineage.commits_after(0)]
    return sum(not isinstance(each, ReserveFragments) for each in operations)


def _uri(folder: Path) -> Path:
    return folder / "a.lance"


def _write_files(folder: Path) -> None:
    for number in range(NUM_ITEMS):
        pq.write_table(rows(number), folder / f"{number:02}.parquet")


def _write_fragments(folder: Path) -> None:
    _write_dataset(folder, ROWS)


def _write_indexed(folder: Path) -> None:
    dataset = _write_dataset(folder, ROWS // 2)
    dataset.create_index("vector", "IVF_FLAT", num_partitions=8)


def _write_dataset(folder: Path, max_rows: int) -> Dataset:
    table = pa.concat_tables([rows(number) for number in range(NUM_ITEMS)])
    return write_dataset(_uri(folder), table, max_rows_per_file=max_rows)


INGEST = ClusterJob("ingest", _write_files, ("ingest", "--task-rows", str(ROWS)), version=1)
BUILD = ClusterJob(
    "build",
    _write_fragments,
    (
        *("build-index", "--column", "vector", "--index-type", "IVF_PQ"),
        *("--num-partitions", "8", "--num-segments", str(NUM_ITEMS)),
    ),
    version=2,
)
COMPACT = ClusterJob(
    "compact",
    _write_indexed,
    ("compact", "--target-rows-per-fragment", str(ROWS)),
    version=4,  # ids are reserved first, by a version of its own
    num_reserving=1,
)
JOBS = (INGEST, BUILD, COMPACT)
