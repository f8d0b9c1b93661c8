"""The command under ``spark-submit``, whose master and Python hold for the job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from pipeline.session import find_java

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
PROGRAM = "from pipeline.cli.main import app; app()"


def test_a_job_runs_where_spark_submit_says_and_by_the_python_that_it_names(tmp_path):
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "rows.parquet")
    program = tmp_path / "lance_pipeline.py"
    program.write_text(PROGRAM)
    used, python = tmp_path / "used", tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >> {used}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    submit = ["--master", "local[1]", "--conf", f"spark.pyspark.python={python}"]
    job = ["ingest", "rows.parquet", "--uri", "a.lance", "--progress", "plain", "--job-id", "one"]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().path),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(  # noqa: S603 - Spark's own script
        [SUBMIT, *submit, program, *job],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert lance.dataset(str(tmp_path / "a.lance")).to_table()["id"].to_pylist() == [*range(1000)]
    assert "pyspark" in used.read_text() or "pipeline" in used.read_text()
