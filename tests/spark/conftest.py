"""One Spark session of a worker for all tests of this folder that it runs."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from pipeline.job import JobContext
from pipeline.journal import default_state_uri, new_job_id
from pipeline.progress import make_progress
from pipeline.session import make_session, stop_session
from pipeline.spark_stages import SparkStages

_FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(_FOLDER):
            item.add_marker(pytest.mark.spark)
            if item.get_closest_marker("cluster") is None:  # those have sessions of their own
                item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark():
    """A session on two cores, where each task is tried four times."""
    with warnings.catch_warnings():
        # pylance, if it is imported already, warns of the fork that starts the JVM
        warnings.simplefilter("ignore")
        session = make_session(
            "local[2,4]",
            {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "4"},
            app_name="tests",
            is_for_jobs=True,
        )
    yield session
    stop_session(session)


@pytest.fixture
def spark_stages(spark):
    return SparkStages(spark, make_progress("none"))


@pytest.fixture
def spark_context(spark, spark_stages):
    """Return contexts of jobs on Spark: ``spark_context(uri, job_id="...")``."""

    def made(uri, *, job_id=None, stages=None):
        uri = str(uri)
        return JobContext(
            uri=uri,
            storage_options=None,
            job_id=new_job_id("test") if job_id is None else job_id,
            state_uri=default_state_uri(uri),
            stages=spark_stages if stages is None else stages,
            progress=make_progress("none"),
        )

    return made
