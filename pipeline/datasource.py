"""Spark's data source ``lance_py``: datasets as tables, to read and to write.

>>> from pipeline import register
>>> register(spark)  # doctest: +SKIP
>>> rows = spark.read.format("lance_py").load("/data/a.lance")  # doctest: +SKIP
>>> rows.write.format("lance_py").mode("append").save("/data/b.lance")  # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.datasource_filters import PushedFilter, joined_filters, push_filters
from pipeline.datasource_options import ReadOptions, table_options
from pipeline.spark_columns import arrow_schema
from pipeline.stream_parts import StreamTarget
from pipeline.streaming import StreamWriter
from pipeline.table_read import carried_options, plan_read, spark_schema, stored_schema
from pipeline.table_write import plan_write

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


class FragmentPartition(InputPartition):
    """Fragments that one task reads."""

    def __init__(self, fragment_ids: tuple[int, ...]) -> None:
        super().__init__(fragment_ids)
        self.fragment_ids = fragment_ids


@dataclass(frozen=True)
class WrittenPart(WriterCommitMessage):
    """What one task wrote: fragments, serialized, that no version names yet."""

    fragments: tuple[bytes, ...]


class LanceReader(DataSourceReader):
    """Reads one version, whichever is the newest when a query is planned.

    Parameters
    ----------
    options
        What to read.
    schema
        The columns that Spark expects.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._read = plan_read(options, arrow_schema(schema))

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's name
        """Take filters that mean the same to a dataset, if that is asked for; yield the others."""
        if not self._options.pushes_filters:
            yield from filters
            return
        pinned = replace(self._options, version=self._read.opened.version)
        pushed, others = push_filters(filters, stored_schema(pinned), self._read.columns)
        if pushed is not None:
            own = [] if self._options.filter is None else [PushedFilter(self._options.filter, {})]
            both = joined_filters([*own, pushed])
            if both is not None:
                self._read = replace(self._read, filter=both.text, params=both.params)
        yield from others

    def partitions(self) -> list[InputPartition]:
        """Return groups of neighbouring fragments."""
        groups = self._read.partitions(self._options.partition_rows)
        return [FragmentPartition(each) for each in groups or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a worker."""
        if isinstance(partition, FragmentPartition):
            yield from self._read.batches(partition.fragment_ids)


class LanceWriter(DataSourceArrowWriter):
    """Writes rows as one version; a write that fails leaves files, which cleanups find.

    Parameters
    ----------
    options
        Of the data source.
    schema
        Of the rows.
    replaces_all
        Whether the rows take the place of all that are there.
    """

    def __init__(self, options: dict[str, str], schema: StructType, *, replaces_all: bool) -> None:
        rows = arrow_schema(schema)
        self._write = plan_write(options, rows, replaces_all=replaces_all)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenPart:
        """Write the rows of one task; runs in a worker."""
        return WrittenPart(tuple(self._write.write(iterator)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote; runs on the driver's host, in a process of its own."""
        parts = [each.fragments for each in messages if isinstance(each, WrittenPart)]
        self._write.commit(parts)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete nothing: a commit whose answer was lost may have come through."""


class LanceDataSource(DataSource):
    """The data source ``lance_py``; its options stand in `pipeline.datasource_options`."""

    @classmethod
    def name(cls) -> str:
        """Return what ``format`` takes."""
        return "lance_py"

    def schema(self) -> StructType:
        """Return the columns of the dataset."""
        options = self._plain_options
        return from_arrow_schema(spark_schema(ReadOptions.of(options), table_options(options)))

    def reader(self, schema: StructType) -> LanceReader:
        """Return what reads a version."""
        carried = carried_options(arrow_schema(schema))
        return LanceReader(ReadOptions.of({**carried, **self._plain_options}), schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        """Return what writes a version."""
        return LanceWriter(self._plain_options, schema, replaces_all=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
        """Return what writes a stream, a version for each micro-batch."""
        target = StreamTarget.of_options(self._plain_options)
        return StreamWriter(target, schema, replaces_all=overwrite)

    @property
    def _plain_options(self) -> dict[str, str]:
        """Options by lower-case names, as Spark keeps them."""
        return {name.lower(): value for name, value in self.options.items()}
