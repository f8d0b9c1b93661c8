"""Ingest of frames: each partition becomes fragments, and one commit takes them in their order.

Rows cross the JVM, which costs more than all else: files are better read by `pipeline.ingest`, and
vectors are better carried as bytes than as lists.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import functions

from lance_core.errors import InvalidRequestError, UnknownColumnError, UnsupportedFeatureError
from pipeline.convert import Converter, OnBadVector, is_vector
from pipeline.errors import StageFailedError
from pipeline.ingest import Vectors
from pipeline.ingest_items import Item, Written, joined
from pipeline.ingest_target import Mode, Place, Target, commit_rows, plan_target, write_rows
from pipeline.job import JobContext, run_making_job
from pipeline.journal import default_state_uri, new_job_id
from pipeline.progress import Progress, make_progress
from pipeline.spark_columns import check_type
from pipeline.spark_stages import told, watched
from pipeline.worker import report
from pipeline.written_files import are_there, data_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import Accumulator
    from pyspark.sql import DataFrame

    from lance_core.dataset import Dataset
    from pipeline.stages import Worker

_SPARK_METADATA = b"SPARK::metadata::json"
_DIMENSION = "dim"
_FLOAT_BYTES = 4
_ANSWER = "partition int, written binary, error string"
_ANSWER_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("written", pa.binary()), ("error", pa.string())]
)


def ingest_dataframe(
    frame: DataFrame,
    place: Place,
    *,
    vectors: Vectors | None = None,
    cluster_by: Sequence[str] = (),
    task_rows: int | None = None,
    job_id: str | None = None,
    state_uri: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Write the rows of a frame to a dataset, as one version, and return its number.

    Parameters
    ----------
    frame
        Its partitions become fragments, in their order. It should give the same rows each time:
        a partition that fails is computed anew.
    place
        The dataset, which need not be there.
    vectors
        Which columns are vectors: arrays of numbers, or bytes of float32. Columns with the
        metadata ``{"dim": 128}``, and those that the dataset has as vectors, need not be named.
    cluster_by
        Columns whose values decide on the place of rows: all rows are shuffled then.
    task_rows
        Fewer partitions are made where they would have less than half as many rows; rows are
        counted for it. None = partitions stay as they are.
    job_id
        Names the job: under the same name it is done once. None = random.
    state_uri
        Folder of what is kept of jobs; None = beside the dataset.
    progress
        Hears what happens; None = nobody.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
        The columns do not fit the dataset, or cannot be stored.
    StageFailedError
        Partitions failed for good.
    """
    hears = make_progress("none") if progress is None else progress
    context = JobContext(
        uri=place.uri,
        storage_options=place.storage_options,
        job_id=new_job_id("ingest") if job_id is None else job_id,
        state_uri=default_state_uri(place.uri) if state_uri is None else state_uri,
        stages=_InDriver(),
        progress=hears,
    )
    known = Vectors() if vectors is None else vectors
    job = _FrameJob(frame, place, known, tuple(cluster_by), task_rows, hears)
    return run_making_job(context, job)


class _InDriver:
    """Stages of a job whose only item is a Spark job itself."""

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        del name, weights
        return [worker(item) for item in items]


@dataclass(frozen=True, slots=True)
class _FrameJob:
    """Ingest of a frame as a job of one item: whether it was written, not which parts of it."""

    frame: DataFrame
    place: Place
    vectors: Vectors
    cluster_by: tuple[str, ...]
    task_rows: int | None
    progress: Progress
    kind: str = field(default="ingest-dataframe", init=False)

    def params(self) -> dict[str, object]:
        return {
            "columns": [
                f"{each.name} {each.dataType.simpleString()}" for each in self.frame.schema
            ],
            "mode": self.place.mode.value,
            "vector_columns": list(self.vectors.columns),
            "dim": self.vectors.dimension,
            "on_bad_vector": self.vectors.on_bad.value,
            "cluster_by": list(self.cluster_by),
        }

    def plan(self, dataset: Dataset | None) -> list[bytes]:
        given = arrow_schema_of(self.frame)
        target = plan_target(self.place, dataset, given, self._dimensions(given, dataset))
        return [Item((), given, target).to_bytes()]

    def worker(self) -> Worker:
        return self._write

    def commit(
        self, dataset: Dataset | None, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        written = joined(map(Written.of, results))
        self.progress.event("written", **written.facts())
        return commit_rows(self.place, dataset, written.target, written.fragments, properties)

    def has_files(self, result: bytes) -> bool:
        files = data_files(Written.of(result).fragments)
        return are_there(self.place.uri, self.place.storage_options, files)

    def _write(self, data: bytes) -> bytes:
        target = Item.of(data).target
        frame = self._partitioned()
        context = frame.sparkSession.sparkContext
        rows = context.accumulator(0)
        work = partial(_write_partition, self.place, target, self.vectors.on_bad, rows)
        with self.progress.phase(self.kind, 1) as phase:
            answers = watched(context, phase, frame.mapInArrow(work, _ANSWER).collect, rows)
            phase.update(1, rows=rows.value)
        failures = {row.partition: row.error for row in answers if row.error is not None}
        if failures:
            names = {number: f"partition {number}" for number in failures}
            raise StageFailedError(self.kind, failures, names)
        ordered = sorted(answers, key=lambda row: row.partition)
        nothing = Written(target, ())
        return joined([nothing, *(Written.of(bytes(row.written)) for row in ordered)]).to_bytes()

    def _partitioned(self) -> DataFrame:
        frame = self.frame
        count = None
        if self.task_rows is not None:
            count = max(1, math.ceil(frame.count() / self.task_rows))
        if self.cluster_by:
            ranged = (
                frame.repartitionByRange(*self.cluster_by)
                if count is None
                else frame.repartitionByRange(count, *self.cluster_by)
            )
            return ranged.sortWithinPartitions(*self.cluster_by)
        if count is not None and frame.rdd.getNumPartitions() > 2 * count:
            return frame.coalesce(count)
        return frame

    def _dimensions(self, given: pa.Schema, dataset: Dataset | None) -> dict[str, int]:
        appended = dataset if self.place.mode is Mode.APPEND else None
        own = () if appended is None else appended.schema.names
        found = declared_dimensions(self.frame)
        for name in self.vectors.columns:
            if name not in given.names:
                raise UnknownColumnError(name, given.names, where="the columns of vectors")
            if self.vectors.dimension is not None:
                found[name] = self.vectors.dimension
            elif name not in found and name not in own:
                found[name] = _first_dimension(self.frame, name)
        is_there = [
            each.name
            for each in (() if appended is None else appended.schema)
            if is_vector(each.type)
        ]
        return {name: size for name, size in found.items() if name not in is_there}


def arrow_schema_of(frame: DataFrame) -> pa.Schema:
    """Return the columns of a frame as its workers see them, without Spark's own metadata.

    Raises
    ------
    UnsupportedFeatureError
        A column has a type that Arrow has not, such as an interval of months or a variant.
    """
    for each in frame.schema:
        check_type(each.name, each.dataType)
    try:
        schema = frame.limit(0).toArrow().schema
    except PySparkException as error:
        raise UnsupportedFeatureError(
            f"the frame has a column that cannot be stored: {error}; cast it"
        ) from error
    return pa.schema([each.with_metadata(_own_metadata(each)) for each in schema])


def declared_dimensions(frame: DataFrame) -> dict[str, int]:
    """Return the dimensions of vectors that the metadata of columns declare.

    Raises
    ------
    InvalidRequestError
        One is no dimension.
    """
    found = {}
    for each in frame.schema:
        size = each.metadata.get(_DIMENSION)
        if size is None:
            continue
        if not isinstance(size, int) or size < 1:
            raise InvalidRequestError(f'column "{each.name}" says that its dim is {size!r}')
        found[each.name] = size
    return found


def _own_metadata(column: pa.Field) -> dict[bytes, bytes] | None:
    metadata = {} if column.metadata is None else dict(column.metadata)
    metadata.pop(_SPARK_METADATA, None)
    return metadata or None


def _first_dimension(frame: DataFrame, name: str) -> int:
    column = functions.col(f"`{name}`")
    row = frame.select(column).where(column.isNotNull()).head()
    if row is None:
        raise InvalidRequestError(f'column "{name}" holds no vector; give the dimension')
    is_bytes = isinstance(row[0], bytes | bytearray)
    return len(row[0]) // _FLOAT_BYTES if is_bytes else len(row[0])


def _write_partition(
    place: Place,
    target: Target,
    on_bad: OnBadVector,
    rows: Accumulator[int],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write a partition to fragments; runs in a worker.

    What is wrong with the rows is returned: raised, it would be tried again.
    """
    task = TaskContext.get()
    partition = 0 if task is None else task.partitionId()
    converter = Converter(target.aim, on_bad)
    written, error = None, None
    try:
        converted = _converted(converter, partition, batches, rows)
        fragments = tuple(write_rows(place, target, converted))
        made = Written(target, fragments, converter.num_bad, converter.num_dropped)
        written = made.to_bytes()
    except (InvalidRequestError, UnsupportedFeatureError) as wrong:
        error = told(wrong)
    yield pa.RecordBatch.from_arrays(
        [
            pa.array([partition], pa.int32()),
            pa.array([written], pa.binary()),
            pa.array([error], pa.string()),
        ],
        schema=_ANSWER_SCHEMA,
    )


def _converted(
    converter: Converter,
    partition: int,
    batches: Iterator[pa.RecordBatch],
    rows: Accumulator[int],
) -> Iterator[pa.RecordBatch]:
    row = 0
    for batch in batches:
        yield converter.convert(batch, partial(_where, partition, row))
        row += batch.num_rows
        report(row)
    rows.add(row)


def _where(partition: int, first: int, row: int) -> str:
    return f"partition {partition}, row {first + row}"
