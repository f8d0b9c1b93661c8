"""Streams into datasets, each micro-batch once: the sink of ``lance_py``; `foreach_batch_writer`.

Tasks write fragments that no version names and send back what they wrote. The driver commits them
all by one transaction, which says which epoch of which stream it holds (see `stream_commit`). What
a failed attempt wrote stays until a cleanup finds it: a commit that failed may have come through.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import (
    IllegalArgumentException,
    PySparkException,
    StreamingQueryException,
)
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from lance_core.errors import InvalidRequestError, LanceError, UnsupportedFeatureError
from pipeline.errors import SparkFailedError
from pipeline.spark_columns import arrow_schema
from pipeline.spark_stages import told
from pipeline.stream_parts import EpochPart, StreamTarget, commit_parts, planned_write, write_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from pipeline.stream_commit import Outcome
    from pipeline.stream_files import FileStream
    from pipeline.table_write import TableWrite

    Told = Callable[[int, Outcome], None]
    Write = Callable[[DataFrame, int], None]

_QUERY_PROPERTY = "sql.streaming.queryId"
_POLL_S = 1


@dataclass(frozen=True)
class StreamMessage(WriterCommitMessage):
    """What a task sends to the driver."""

    part: EpochPart


class StreamWriter(DataSourceStreamArrowWriter):
    """The sink of ``df.writeStream.format("lance_py")``.

    Made anew for every micro-batch, on the driver's host by processes that plan and commit it.

    Parameters
    ----------
    target
        Where the rows go; the dataset is made if there is none.
    schema
        Of the rows.
    replaces_all
        Whether each epoch replaces all rows, as those of ``outputMode("complete")`` do.
    """

    def __init__(self, target: StreamTarget, schema: StructType, *, replaces_all: bool) -> None:
        self._target = target
        self._replaces_all = replaces_all
        self._rows = arrow_schema(schema)
        self._planned: TableWrite | None = None

    def __getstate__(self) -> dict[str, object]:
        """Settle what tasks do when Spark sends them the writer; commits need none of that."""
        self._plan()
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamMessage:
        """Write the rows of one task; runs in a worker."""
        context = TaskContext.get()
        query_id = None if context is None else context.getLocalProperty(_QUERY_PROPERTY)
        return StreamMessage(write_part(self._plan(), query_id, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit an epoch, unless it is there; runs on the driver's host."""
        parts = [each.part for each in messages if isinstance(each, StreamMessage)]
        commit_parts(self._target, parts, batchId, replaces_all=self._replaces_all)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Delete nothing: a commit whose answer was lost may have come through."""

    def _plan(self) -> TableWrite:
        if self._planned is None:
            self._planned = planned_write(self._target, self._rows)
        return self._planned


class ForeachBatchWriter:
    """Writes micro-batches; made by `foreach_batch_writer`."""

    def __init__(self, target: StreamTarget, *, replaces_all: bool, told: Told) -> None:
        self._target = target
        self._replaces_all = replaces_all
        self._told = told

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write one micro-batch, unless it is there; Spark calls this on the driver."""
        query_id = rows.sparkSession.sparkContext.getLocalProperty(_QUERY_PROPERTY)
        _check_mode(query_id, replaces_all=self._replaces_all)
        planned = planned_write(self._target, arrow_schema(rows.schema))
        write = partial(_write_in_task, planned, query_id)
        found = rows.mapInArrow(write, "part binary, error string").collect()
        wrong = next((each.error for each in found if each.error is not None), None)
        if wrong is not None:
            raise InvalidRequestError(wrong)
        parts = [pickle.loads(each.part) for each in found]  # noqa: S301 - of our own tasks
        outcome = commit_parts(self._target, parts, batch_id, replaces_all=self._replaces_all)
        self._told(batch_id, outcome)


def foreach_batch_writer(
    uri: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    mode: Literal["append", "complete"] = "append",
    query_id: str | None = None,
    checkpoint: str = "",
    vectors: Mapping[str, int] | None = None,
    told: Told = lambda _number, _outcome: None,
) -> ForeachBatchWriter:
    """Return a function for ``df.writeStream.foreachBatch``: each micro-batch is committed once.

    Parameters
    ----------
    uri
        The dataset, which is made with the first micro-batch if there is none.
    storage_options
        Of its store.
    mode
        The output mode of the query: ``complete`` replaces all rows by each micro-batch.
    query_id
        Name of the stream; None = Spark's own, which is that of the checkpoint. One that is given
        makes micro-batches that were committed stay so when the checkpoint is lost: only for
        sources that then give the same micro-batches again.
    checkpoint
        Where the checkpoint is, to be given with ``query_id``: tells apart two streams of one name.
    vectors
        Columns of vectors with their dimensions, for a dataset that is made.
    told
        Called with the number of each epoch and what became of it.

    Raises
    ------
    InvalidRequestError
        Another mode is given, or ``query_id`` without ``checkpoint``.

    Examples
    --------
    >>> write = foreach_batch_writer("/data/events.lance")
    >>> query = df.writeStream.foreachBatch(write).start()  # doctest: +SKIP
    """
    if mode not in ("append", "complete"):
        raise InvalidRequestError(
            f"mode is {mode!r}; rows are appended or replaced as a whole, give append or complete"
        )
    target = StreamTarget.of(
        uri, storage_options, query_id=query_id, checkpoint=checkpoint, vectors=vectors
    )
    return ForeachBatchWriter(target, replaces_all=mode == "complete", told=told)


def run_file_stream(spark: SparkSession, files: FileStream, write: Write) -> None:
    """Read files until there are no more, or until the user interrupts.

    Parameters
    ----------
    spark
        A classic session.
    files
        What is read.
    write
        Takes each micro-batch, such as a `foreach_batch_writer`.

    Raises
    ------
    InvalidRequestError
        There is no file yet, so that nobody knows the columns, or the trigger makes no sense.
    LanceError
        Whatever ``write`` raises.
    SparkFailedError
        The query failed for another reason.
    """
    errors: list[LanceError] = []

    def write_and_keep(rows: DataFrame, number: int) -> None:
        try:
            write(rows, number)
        except LanceError as error:
            errors.append(error)
            raise

    query = _start(spark, files, write_and_keep)
    try:
        while not query.awaitTermination(_POLL_S):
            pass
    except StreamingQueryException as error:
        if errors:
            raise errors[-1] from error
        raise SparkFailedError(f"the stream was given up: {_first_line(error)}") from error
    finally:
        query.stop()


def _write_in_task(
    write: TableWrite, query_id: str | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    part = error = None
    try:
        part = pickle.dumps(write_part(write, query_id, batches))
    except (InvalidRequestError, UnsupportedFeatureError) as wrong:  # the same if tried again
        error = told(wrong)
    yield pa.RecordBatch.from_arrays(
        [pa.array([part], pa.binary()), pa.array([error], pa.string())], ["part", "error"]
    )


def _check_mode(query_id: str | None, *, replaces_all: bool) -> None:
    """Refuse a query whose output mode is not what the writer was made for."""
    mode = _output_mode(query_id)
    expected = "complete" if replaces_all else "append"
    if mode not in ("", expected):
        raise InvalidRequestError(
            f"the query's output mode is {mode}, the writer was made for {expected}; rows are"
            " appended, or replaced as a whole in mode complete, and never updated"
        )


def _output_mode(query_id: str | None) -> str:
    """Return the output mode of a query, empty where Spark does not tell.

    The session of a micro-batch is another one, which knows of no query.
    """
    session = SparkSession.getActiveSession()
    queries = [] if session is None else session.streams.active
    query = next((each for each in queries if each.id == query_id), None)
    return "" if query is None else str(query._jsq.streamingQuery().outputMode()).lower()


def _start(spark: SparkSession, files: FileStream, write: Write) -> StreamingQuery:
    try:
        schema = spark.read.format(files.file_format).load(files.folder).schema
        reader = spark.readStream.format(files.file_format).schema(schema)
        rows = reader.option("maxFilesPerTrigger", files.max_files).load(files.folder)
        writer = rows.writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", files.checkpoint)
        if files.trigger is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=files.trigger).start()
    except IllegalArgumentException as error:
        raise InvalidRequestError(
            f"the stream cannot begin: {_first_line(error)}; a trigger is written '1 minute'"
        ) from error
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidRequestError(
            f"{files.folder} cannot be read as {files.file_format}: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    """Return what Spark says, without its plans and stacks."""
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    line: str = text.strip().partition("\n")[0]
    return line
