"""Rows of a dataset for tasks that read it: what the data source does, without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.dataset.places import branch_of
from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.query.request import ScanQuery
from pipeline.datasource_options import TABLE_OPTIONS, OpenedVersion
from pipeline.plan import neighbours_up_to
from pipeline.readable import readable, readable_schema
from pipeline.worker import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.datasource_options import ReadOptions

SPARK_METADATA = b"SPARK::metadata::json"
"""Key of a field's metadata in Arrow under which Spark keeps its own."""
LANCE_TYPE = "lance.type"
"""Key of a column's metadata in Spark: the type that it has in the dataset."""


@dataclass(frozen=True, slots=True)
class TableRead:
    """What tasks read of a version; small, as it is sent along with each.

    Parameters
    ----------
    opened
        The version.
    columns
        Columns, in their order.
    schema
        The columns as Spark expects them.
    filter
        Rows to read; None = all.
    params
        Values of the ``$name`` in the filter.
    """

    opened: OpenedVersion
    columns: tuple[str, ...]
    schema: pa.Schema
    filter: str | None = None
    params: Mapping[str, object] | None = None

    def batches(self, fragment_ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some fragments, as Spark takes them."""
        query = ScanQuery(
            columns=self.columns,
            filter=self.filter,
            params=self.params,
            fragment_ids=frozenset(fragment_ids),
        )
        for batch in self.opened.dataset().scan_of(query).batches():
            yield readable(batch, self.schema)

    def partitions(self, partition_rows: int) -> list[tuple[int, ...]]:
        """Return which fragments are read together: neighbours of about so many rows."""
        fragments = self.opened.dataset().snapshot.fragments
        groups = neighbours_up_to([each.physical_rows for each in fragments], partition_rows)
        return [tuple(fragments[place].id for place in group) for group in groups]


def stored_schema(options: ReadOptions) -> pa.Schema:
    """Return the columns that are read, as they are stored.

    Raises
    ------
    UnknownColumnError
        One that is asked for is not there.
    """
    return _opened(options)[1]


def spark_schema(options: ReadOptions, carried: Mapping[str, str] | None = None) -> pa.Schema:
    """Return the columns as Spark takes them; metadata for Spark tell what they were.

    Parameters
    ----------
    options
        What to read.
    carried
        Options that the first column is to carry, see `carried_options`; None = there are none.

    Raises
    ------
    UnknownColumnError
        One that is asked for is not there.
    UnsupportedFeatureError
        Spark has no type for one.
    """
    opened, stored = _opened(options)
    table = opened.dataset().snapshot.schema
    fields = []
    for place, field in enumerate(readable_schema(stored)):
        own, told = table.top(field.name), {}
        is_other = field.type != stored.field(place).type
        if own is not None and len(own.children) == 0 and is_other:
            told[LANCE_TYPE] = own.logical_type
        if place == 0 and carried is not None:
            told[TABLE_OPTIONS] = json.dumps(dict(carried))
        metadata = {SPARK_METADATA: json.dumps(told).encode()}
        fields.append(field.with_metadata(metadata) if told else field)
    return pa.schema(fields)


def carried_options(schema: pa.Schema) -> dict[str, str]:
    """Return the options that columns carry, of a table that SQL has made; none of others."""
    for field in schema:
        text = spark_metadata(field).get(TABLE_OPTIONS)
        if isinstance(text, str):
            return {str(name): str(value) for name, value in json.loads(text).items()}
    return {}


def spark_metadata(field: pa.Field) -> dict[str, object]:
    """Return the metadata that Spark keeps of a column."""
    told = None if field.metadata is None else field.metadata.get(SPARK_METADATA)
    found = {} if told is None else json.loads(told)
    return found if isinstance(found, dict) else {}


def plan_read(options: ReadOptions, expected: pa.Schema) -> TableRead:
    """Settle which version is read, and how.

    Parameters
    ----------
    options
        What to read.
    expected
        The columns as Spark expects them; fewer than there are if it was told so.

    Raises
    ------
    InvalidRequestError
        The filter is none, or a column is not there or of another type.
    """
    opened, stored = _opened(options)
    plain = readable_schema(stored)
    for field in expected:
        if field.name not in plain.names:
            raise UnknownColumnError(field.name, plain.names, where="the schema given to Spark")
        own = plain.field(field.name).type
        if own != field.type:
            raise InvalidRequestError(
                f"column {field.name!r} is read as {own}, the schema given to Spark says"
                f" {field.type}; leave the schema out"
            )
    read = TableRead(opened, tuple(expected.names), expected, options.filter)
    opened.dataset().scan_of(ScanQuery(columns=read.columns, filter=read.filter))
    return read


def _opened(options: ReadOptions) -> tuple[OpenedVersion, pa.Schema]:
    storage = dict(options.storage_options) or None
    dataset = dataset_at(options.uri, options.version, storage, branch=options.branch)
    branch = branch_of(dataset.snapshot)
    opened = OpenedVersion(options.uri, options.storage_options, dataset.version, branch)
    query = ScanQuery(columns=options.columns)
    return opened, dataset.scan_of(query).schema
