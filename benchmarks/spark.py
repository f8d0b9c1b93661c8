"""The pipeline on Spark: against the same functions in two processes, and against pylance.

Spark runs as ``local[2]``, whose start is told apart; two plain processes work on the same items by
the same functions, so that the difference is what Spark takes. Rounds of all three alternate, those
of ingests before those of builds, and the best of each counts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow.parquet as pq

from benchmarks.datasets import PLAIN
from benchmarks.report import Row
from benchmarks.workers import CONTEXT, call, start_process
from lance_core.dataset import open_dataset
from lance_core.operations.new_index import NewIndex
from pipeline.build import BuildIndex, BuildRequest
from pipeline.ingest import ingest_files
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Place
from pipeline.job import JobContext, run_job
from pipeline.journal import default_state_uri, new_job_id
from pipeline.progress import make_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

    from benchmarks.datasets import BenchmarkSet, Size
    from pipeline.stages import Stages, Worker

NUM_TASKS = 4
"""Two for each core, of half a second each; Spark takes some 20 ms of each."""
NUM_SEGMENTS = 4
NUM_PROCESSES = 2
MOST_BUILDS = 5
INGESTS = 15
"""Half of them take twice as long as the others, on every side: the kernel clears its memory."""
OVERHEAD_BAR = 1.25
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
"""Of each process that works on items, as the pipeline has it on Spark."""


class Side(Protocol):
    """One that can ingest files and build an index; both return the seconds it took."""

    def ingest(self, files: Sequence[str], path: Path, size: Size) -> float:
        """Write the rows of files to a dataset."""

    def build(self, path: Path, size: Size) -> float:
        """Build an index of a dataset."""


def measure_spark(bench: BenchmarkSet, num_blocks: int) -> list[Row]:
    """Return how fast rows are ingested and an index is built on Spark, and by the others."""
    num_rounds = {"ingest": INGESTS, "build": min(num_blocks, MOST_BUILDS)}
    with (
        tempfile.TemporaryDirectory(dir=bench.root) as folder,
        start_process(_spark_calls) as connection,
        _Pool() as pool,
    ):
        print("pipeline, writing files and starting Spark", flush=True)
        files = _write_files(bench, Path(folder))
        session_s, stage_s = cast("tuple[float, float]", call(connection, "start"))
        sides: dict[str, Side] = {"spark": _Remote(connection), "pool": pool, "pylance": _Pylance()}
        first = [_first_ingest(sides[name], files, Path(folder), bench.size) for name in sides]
        best = _best(sides, files, Path(folder), bench.size, num_rounds)
        call(connection, "stop")
    rows = [
        Row("start of Spark", "session s; first stage s", session_s, stage_s, stage_s / session_s),
        Row(
            "start of Spark",
            "first ingest s; in processes",
            first[0],
            first[1],
            first[0] / first[1],
        ),
    ]
    for work, label in (("ingest", "ingest"), ("build", "build of IVF_PQ")):
        spark, pooled, peer = (best[side, work] for side in sides)
        case = f"{label} on Spark, {bench.size.num_rows:,} rows"
        rates = (bench.size.num_rows / spark, bench.size.num_rows / peer)
        rows.append(Row(case, "rows per s", *rates, rates[0] / rates[1]))
        figure = f"s; in {NUM_PROCESSES} processes"
        rows.append(Row(case, figure, spark, pooled, spark / pooled, OVERHEAD_BAR))
    return rows


def _first_ingest(side: Side, files: Sequence[str], folder: Path, size: Size) -> float:
    """Ingest once, for a JVM loads and compiles its own code on the way: that is start-up."""
    path = folder / "first.lance"
    seconds = side.ingest(files, path, size)
    shutil.rmtree(path)
    return seconds


def _best(
    sides: dict[str, Side],
    files: Sequence[str],
    folder: Path,
    size: Size,
    num_rounds: dict[str, int],
) -> dict[tuple[str, str], float]:
    """Return the best time of each side for each kind of work, measured in rounds of its own.

    What a build leaves of the machine's memory makes an ingest that comes next twice as slow.
    """
    best: dict[tuple[str, str], float] = {}
    rounds = [(work, number) for work, count in num_rounds.items() for number in range(count)]
    for (work, number), (name, side) in product(rounds, sides.items()):
        print(f"pipeline, {work}, round {number + 1} of {num_rounds[work]}, {name}", flush=True)
        path = folder / f"{name}-{number}.lance"
        os.sync()
        seconds = side.ingest(files, path, size)
        if work == "build":
            seconds = side.build(path, size)
        shutil.rmtree(path)
        best[name, work] = min(seconds, best.get((name, work), seconds))
    return best


def _write_files(bench: BenchmarkSet, folder: Path) -> list[str]:
    """Write the rows of a set to Parquet files, a task each."""
    rows = open_dataset(bench.root / PLAIN).scan().read_all()
    step = -(-len(rows) // NUM_TASKS)
    paths = [str(folder / f"{number:02}.parquet") for number in range(NUM_TASKS)]
    for number, path in enumerate(paths):
        part = rows.slice(number * step, step)
        pq.write_table(part, path, compression="none", use_dictionary=False)
    return paths


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class _Jobs:
    """Jobs of the pipeline, whatever runs their stages."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages

    def ingest(self, files: Sequence[str], path: Path, size: Size) -> float:
        task_rows = -(-size.num_rows // NUM_TASKS)
        work = partial(
            ingest_files,
            self._context(path),
            Sources(tuple(files)),
            Place(str(path)),
            task_rows=task_rows,
        )
        return _timed(work)

    def build(self, path: Path, size: Size) -> float:
        parameters = {
            "metric": "l2",
            "num_partitions": size.num_partitions,
            "num_sub_vectors": size.num_sub_vectors,
        }
        index = NewIndex("vector_idx", "vector", "IVF_PQ", parameters)
        request = BuildRequest(index, num_segments=NUM_SEGMENTS)
        context = self._context(path)
        return _timed(partial(run_job, context, BuildIndex(context, request)))

    def _context(self, path: Path) -> JobContext:
        return JobContext(
            uri=str(path),
            storage_options=None,
            job_id=new_job_id("bench"),
            state_uri=default_state_uri(str(path)),
            stages=self._stages,
            progress=make_progress("none"),
        )


class _Pool(_Jobs):
    """Plain processes as workers."""

    def __init__(self) -> None:
        super().__init__(self)
        self._pool = ProcessPoolExecutor(NUM_PROCESSES, mp_context=CONTEXT)

    def __enter__(self) -> _Pool:
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(
            ONE_THREAD
        )  # processes get it when they start, which is at the first item
        list(self._pool.map(_warm_up, [b""] * 2 * NUM_PROCESSES))
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        return list(self._pool.map(worker, items))


class _Remote:
    """A side in a process of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ingest(self, files: Sequence[str], path: Path, size: Size) -> float:
        return cast("float", call(self._connection, "ingest", files, path, size))

    def build(self, path: Path, size: Size) -> float:
        return cast("float", call(self._connection, "build", path, size))


class _Pylance:
    """The peer, which takes all the threads that there are."""

    def ingest(self, files: Sequence[str], path: Path, size: Size) -> float:
        lance: Any = import_module("lance")
        dataset: Any = import_module("pyarrow.dataset")
        return _timed(lambda: lance.write_dataset(dataset.dataset(files), str(path)))

    def build(self, path: Path, size: Size) -> float:
        lance: Any = import_module("lance")
        parameters: dict[str, Any] = {
            "metric": "l2",
            "num_partitions": size.num_partitions,
            "num_sub_vectors": size.num_sub_vectors,
        }
        return _timed(
            lambda: lance.dataset(str(path)).create_index("vector", "IVF_PQ", **parameters)
        )


def _spark_calls() -> dict[str, Callable[..., object]]:
    calls: dict[str, Callable[..., object]] = {}

    def start() -> tuple[float, float]:
        session = import_module("pipeline.session")
        stages = import_module("pipeline.spark_stages")
        started = time.perf_counter()
        spark = session.make_session(f"local[{NUM_PROCESSES}]", is_for_jobs=True)
        ready = time.perf_counter()
        runner = stages.SparkStages(spark, make_progress("none"))
        runner.run("warm-up", [b""] * 2 * NUM_PROCESSES, _warm_up)
        jobs = _Jobs(runner)
        stop = partial(session.stop_session, spark)
        calls.update(ingest=jobs.ingest, build=jobs.build, stop=stop)
        return ready - started, time.perf_counter() - ready

    calls["start"] = start
    return calls


def _warm_up(item: bytes) -> bytes:
    """Load the kernels that building takes, so that no side pays for it."""
    import_module("lance_core.kernels.warm").warm_kernels()
    return item + uuid.uuid4().bytes
