"""Jobs on a cluster of which something dies at random moments, until they are done.

``python -m tests.pipeline_runs --count 20``: each run is a job whose executors are killed, whose
driver dies before or after it publishes a version, and which is run again until it ends well. Then
everything must be there once.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from pipeline.session import find_java
from tests.cluster_jobs import JOBS
from tests.spark_cluster import Cluster, kill, running_cluster
from tests.spark_driver import Driver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster_jobs import ClusterJob

_MAX_ATTEMPTS = 10
_DEATHS: tuple[Literal["before", "after"] | None, ...] = ("before", "after", None)


def main() -> None:
    """Do as many runs as asked for; the first that goes wrong ends with an AssertionError."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=12, help="runs")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "cluster").mkdir()
        with running_cluster(root / "cluster", find_java().path) as cluster:
            for number in range(arguments.count):
                rng = np.random.default_rng((arguments.seed, number))
                job = JOBS[number % len(JOBS)]
                place = root / f"run-{number}"
                place.mkdir()
                deaths = _done(cluster, job, place, rng)
                print(f"run {number}: {job.name}, done once after {deaths}", flush=True)  # noqa: T201


def _done(cluster: Cluster, job: ClusterJob, folder: Path, rng: np.random.Generator) -> str:
    """Run a job until it is done, while things die; return what did."""
    job.prepare(folder)
    told = []
    for attempt in range(_MAX_ATTEMPTS):
        dies = _DEATHS[int(rng.integers(len(_DEATHS)))] if attempt + 1 < _MAX_ATTEMPTS else None
        with Driver(cluster, folder) as driver, _losing_executors(cluster, rng) as lost:
            code = driver.run(*job.command(folder), dies=dies)
        told.append(f"{len(lost)} executors" + ("" if dies is None else f" and the driver {dies}"))
        if code == 0:
            job.check(folder, has_lost_drivers=attempt > 0)
            return ", then ".join(told)
        assert (code, dies is None) == (-signal.SIGKILL, False), driver.said()
    raise AssertionError(told)


@contextmanager
def _losing_executors(cluster: Cluster, rng: np.random.Generator) -> Iterator[list[int]]:
    """Kill an executor or two at random moments of the block."""
    over = threading.Event()
    lost: list[int] = []

    def work() -> None:
        for _ in range(int(rng.integers(3))):
            while not cluster.executors() and not over.wait(0.05):
                pass
            if over.wait(float(rng.uniform(0, 8))):
                return
            alive = cluster.executors()
            if alive:
                lost.append(int(rng.choice(alive)))
                kill(lost[-1:])

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lost
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    main()
