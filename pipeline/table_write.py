"""Rows of Spark that become a version of a dataset: what the data source does, without Spark.

Tasks write fragments that no version names, the driver commits them all at once. A commit that is
made twice, as its answer was lost, is found to be there by its transaction.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.dataset import open_dataset
from lance_core.errors import (
    DatasetNotFoundError,
    InvalidRequestError,
    TypeMismatchError,
    UnknownColumnError,
    UnsupportedFeatureError,
)
from lance_core.proto import table_pb2
from lance_core.schema.arrow import parse_logical_type, to_arrow_field
from lance_core.table.versions import list_manifests
from pipeline.datasource_options import (
    check_write_options,
    flag_of,
    number_of,
    path_of,
    storage_options_of,
    vectors_of,
)
from pipeline.ingest_target import Mode, Place, Target, commit_rows, plan_target, write_rows
from pipeline.job import ITEM_COUNT, JOB_ID, KIND, find_commit
from pipeline.readable import readable_type
from pipeline.storable import storable, storable_array
from pipeline.table_read import LANCE_TYPE, spark_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance_core.dataset import Dataset
    from lance_core.schema.tree import LanceSchema

_KIND = "write"
_DIMENSIONS = ("dim", "arrow.fixed-size-list.size")
"""Keys of a column's metadata in Spark that make it one of vectors; the second is lance-spark's."""
_MAX_ROWS_PER_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class TableWrite:
    """A write that is planned; small, as it is sent along with each task.

    Parameters
    ----------
    place
        Where the rows go.
    read_version
        The version that it was planned for; 0 = there was no dataset.
    target
        What rows become, as `Target.to_json` has it.
    job_id
        Names the write.
    is_done
        Whether a write of the name was committed before: then nothing is written.
    """

    place: Place
    read_version: int
    target: Mapping[str, str]
    job_id: str
    is_done: bool

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[bytes]:
        """Write the rows of one task; return fragments, serialized."""
        if self.is_done:
            return []
        target = Target.of_json(self.target)
        rows = (storable(batch, target.aim) for batch in batches)
        fragments = write_rows(self.place, target, rows)
        return [each.SerializeToString() for each in fragments]

    def commit(self, parts: Sequence[Sequence[bytes]]) -> int:
        """Commit what tasks wrote, in their order, unless that was done; return the version."""
        if self.is_done:
            return self.read_version
        fragments = [table_pb2.DataFragment.FromString(each) for part in parts for each in part]
        properties = {JOB_ID: self.job_id, KIND: _KIND, ITEM_COUNT: str(len(parts))}
        dataset = None if self.read_version == 0 else self._opened(self.read_version)
        return commit_rows(self.place, dataset, Target.of_json(self.target), fragments, properties)

    def _opened(self, version: int) -> Dataset:
        options = self.place.storage_options
        return open_dataset(self.place.uri, version, storage_options=options)


def plan_write(options: Mapping[str, str], rows: pa.Schema, *, replaces_all: bool) -> TableWrite:
    """Settle what rows become.

    Parameters
    ----------
    options
        See `pipeline.datasource_options`.
    rows
        Columns as Spark hands them to Python, with its metadata.
    replaces_all
        Whether they take the place of all rows.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
        An option is wrong, or the columns do not fit the dataset or cannot be stored.
    """
    place = _place(options, replaces_all=replaces_all)
    try:
        dataset = open_dataset(place.uri, storage_options=place.storage_options)
    except DatasetNotFoundError:
        dataset = None
    job_id = options.get("jobid")
    is_done = dataset is not None and job_id is not None and _is_committed(dataset, job_id)
    is_new = dataset is None or replaces_all
    if dataset is None or replaces_all:
        given = pa.schema([_field_of_new(field) for field in rows])
    else:
        given = pa.schema([_field_of_table(field, dataset.snapshot.schema) for field in rows])
    dimensions = _dimensions(options, rows)
    if dataset is not None and not is_new:
        _check_dimensions(dataset, vectors_of(options))
    return TableWrite(
        place=place,
        read_version=0 if dataset is None else dataset.version,
        target=plan_target(place, dataset, given, dimensions if is_new else {}).to_json(),
        job_id=f"{_KIND}-{uuid.uuid4()}" if job_id is None else job_id,
        is_done=is_done,
    )


def _place(options: Mapping[str, str], *, replaces_all: bool) -> Place:
    check_write_options(options)
    return Place(
        uri=path_of(options),
        storage_options=dict(storage_options_of(options)) or None,
        mode=Mode.OVERWRITE if replaces_all else Mode.APPEND,
        max_rows_per_file=number_of(options, "maxrowsperfile", _MAX_ROWS_PER_FILE),
        data_storage_version=options.get("datastorageversion"),
        stable_row_ids=flag_of(options, "stablerowids"),
    )


def _is_committed(dataset: Dataset, job_id: str) -> bool:
    """Look for a job among all versions that are there."""
    store = dataset.snapshot.scheduler.store
    oldest = min(each.version for each in list_manifests(store))
    return find_commit(dataset, job_id, oldest - 1) is not None


def _dimensions(options: Mapping[str, str], rows: pa.Schema) -> dict[str, int]:
    """Return the columns of vectors with their dimensions: by metadata, or by the option."""
    told = {}
    for field in rows:
        known = spark_metadata(field)
        found = [known[key] for key in _DIMENSIONS if key in known]
        if found:
            try:
                told[field.name] = int(str(found[0]))
            except ValueError:
                raise InvalidRequestError(
                    f"the metadata of column {field.name!r} say that vectors have {found[0]!r}"
                    " numbers; give a number"
                ) from None
    return {**told, **vectors_of(options)}


def _check_dimensions(dataset: Dataset, wanted: Mapping[str, int]) -> None:
    """Refuse dimensions that the vectors of a dataset have not."""
    for name, dimension in wanted.items():
        if name not in dataset.schema.names:
            raise UnknownColumnError(name, dataset.schema.names, where="the columns of vectors")
        kind = dataset.schema.field(name).type
        if not (pa.types.is_fixed_size_list(kind) and kind.list_size == dimension):
            raise InvalidRequestError(
                f"column {name!r} of the dataset is {kind}, not vectors of {dimension} numbers;"
                " leave the dimension out, or write to another dataset"
            )


def _field_of_new(field: pa.Field) -> pa.Field:
    """Return the field of a new dataset: of the type it had in another, if Spark knows that."""
    plain = _plain(field)
    logical = spark_metadata(field).get(LANCE_TYPE)
    if not isinstance(logical, str):
        return plain
    try:
        kind = parse_logical_type(logical)
        is_same = readable_type(kind) == _with_nulls(field.type)
    except UnsupportedFeatureError:
        return plain
    return pa.field(field.name, kind) if is_same else plain


def _field_of_table(field: pa.Field, table: LanceSchema) -> pa.Field:
    """Return the field that a column becomes in a table, itself if the table has none of the name.

    Raises
    ------
    TypeMismatchError
        Its values are of another kind.
    """
    own = table.top(field.name)
    if own is None:
        return _plain(field)
    wanted = pa.field(field.name, pa.large_binary()) if own.is_blob else to_arrow_field(own)
    try:
        storable_array(pa.array([], field.type), wanted.type)
        is_text = pa.types.is_string(field.type)
        fits = is_text is pa.types.is_string(readable_type(wanted.type))
    except (InvalidRequestError, pa.ArrowException):
        fits = False
    if not fits and not pa.types.is_null(field.type):
        raise TypeMismatchError(
            f"column {field.name!r} is {wanted.type} in the dataset and {field.type} in the rows;"
            " cast it"
        )
    return wanted


def _plain(field: pa.Field) -> pa.Field:
    """Return a field without Spark's metadata, in which nulls are allowed, as in Spark's files."""
    return pa.field(field.name, _with_nulls(field.type))


def _with_nulls(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _with_nulls(kind.value_type)))  # Spark says element
    if pa.types.is_map(kind):
        return pa.map_(
            pa.field("key", _with_nulls(kind.key_type), nullable=False),
            pa.field("value", _with_nulls(kind.item_type)),
        )
    if pa.types.is_struct(kind):
        return pa.struct([_plain(child) for child in kind])
    return kind
