"""The demo's table: made by the Spark pipeline, or without Java by the commands of one machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lance_core

EXAMPLES = Path(__file__).parent
ROWS = EXAMPLES / "wordnet.parquet"
MORE_ROWS = EXAMPLES / "wordnet_more.parquet"
NUM_DELETED = 300
SEED = 20_261_128
NUM_PARTITIONS, NUM_SUB_VECTORS = "64", "96"


def make_demo_data(root: Path) -> None:
    """Make ``wordnet.lance`` below a folder anew: 20,000 rows and indices, then changes.

    500 rows that come and 300 that go after the indices were built show what a service has to do
    about those.
    """
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    table = root / "wordnet.lance"
    started = time.monotonic()
    reason = _why_not_spark()
    if reason is None:
        place = ("--uri", str(table))
        _run("lance-pipeline", "ingest", *place, str(ROWS))
        sizes = ("--num-partitions", NUM_PARTITIONS, "--num-sub-vectors", NUM_SUB_VECTORS)
        index = ["--column", "vector", "--metric", "cosine", *sizes]
        _run("lance-pipeline", "build-index", *place, *index)
    else:
        print(f"no Spark here: {reason}\nThe same is done by the commands for one machine.")
        _run("lance-serve", "ingest", str(ROWS), str(table))
        sizes = ("--partitions", NUM_PARTITIONS, "--sub-vectors", NUM_SUB_VECTORS)
        index = ["vector", "--type", "ivf_pq", "--metric", "cosine", *sizes]
        _run("lance-serve", "index", "create", str(table), *index)
    _run("lance-serve", "index", "create", str(table), "text", "--type", "fts", "--positions")
    _change(table)
    print(f"the demo's table is made, in {time.monotonic() - started:.0f} s\n", flush=True)


def _why_not_spark() -> str | None:
    """Return why the pipeline cannot run here, None if it can."""
    try:
        from pipeline.errors import NoJavaError  # noqa: PLC0415 - where Spark is installed
        from pipeline.session import find_java  # noqa: PLC0415 - as above
    except ImportError as error:
        return f"{error.name} is not installed (lance-serve[spark] brings it)"
    try:
        find_java()
    except NoJavaError as error:
        return str(error)
    return None


def _change(table: Path) -> None:
    """Append and delete rows, which no index knows of."""
    dataset = lance_core.open_dataset(table)
    num_rows = dataset.count_rows()
    more = pq.read_table(MORE_ROWS).select(dataset.schema.names)
    ids = pa.array(range(num_rows, num_rows + len(more)))  # the file's own are taken
    dataset = dataset.append(more.set_column(more.schema.names.index("id"), "id", ids))
    deleted = np.random.default_rng(SEED).choice(num_rows, NUM_DELETED, replace=False)
    dataset = dataset.delete(f"id IN ({', '.join(str(row) for row in np.sort(deleted))})")
    print(f"appended {len(more)} rows, deleted {NUM_DELETED}: version {dataset.version}")


def _run(command: str, *arguments: str) -> None:
    """Run a command of ours, and show how to type it."""
    shown = " ".join(_relative(each) for each in arguments)
    print(f"$ {command} {shown}", flush=True)
    path = Path(sys.executable).with_name(command)
    done = subprocess.run(  # noqa: S603 - our own command line
        [str(path), *arguments], cwd=EXAMPLES.parent, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{command} ended with status {done.returncode}")


def _relative(argument: str) -> str:
    path = Path(argument)
    root = EXAMPLES.parent
    return str(path.relative_to(root)) if path.is_relative_to(root) else argument


if __name__ == "__main__":
    make_demo_data(EXAMPLES.parent / ".demo")
