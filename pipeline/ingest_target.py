"""What rows become: the columns that they are converted to, new fragments, and one commit.

Shared by everything that writes rows: files, frames, streams and the data source.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.dataset.places import as_uri
from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.operations.append import file_version_of
from lance_core.operations.field_ids import numbered_from, smallest_new_id
from lance_core.operations.given_rows import fitted, matching_fields, schema_of_new
from lance_core.operations.write_fragments import FragmentOptions, write_fragments
from lance_core.proto import file_pb2
from lance_core.query.session import Session
from lance_core.schema.arrow import to_arrow_field
from lance_core.schema.from_arrow import schema_from_arrow
from lance_core.schema.from_proto import schema_from_messages
from lance_core.schema.to_proto import schema_message
from lance_core.table.commit import commit
from lance_core.table.dataset_stores import open_dataset_store
from lance_core.table.next_version import NewDataset
from lance_core.table.transaction import Append, Overwrite, Transaction
from pipeline.convert import is_vector, vector_field
from pipeline.job import transaction_uuid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance_core.dataset import Dataset
    from lance_core.proto import table_pb2
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.transaction import Operation

_PLACE = "the plan of a job"


class Mode(StrEnum):
    """What becomes of a dataset that is there already; ``append`` and ``overwrite`` make one."""

    APPEND = "append"
    CREATE = "create"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows go.

    Parameters
    ----------
    uri
        The dataset.
    storage_options
        Of its store.
    mode
        What becomes of the rows that are there.
    max_rows_per_file, max_bytes_per_file
        Sizes of fragments.
    data_storage_version
        Of the files of a dataset that is made or overwritten; None = its own, or 2.2.
    stable_row_ids
        Of a dataset that is made: whether rows keep their ids when they move.
    """

    uri: str
    storage_options: Mapping[str, str] | None = None
    mode: Mode = Mode.APPEND
    max_rows_per_file: int = 1 << 20
    max_bytes_per_file: int = 90 << 30
    data_storage_version: str | None = None
    stable_row_ids: bool = False

    def check(self, dataset: Dataset | None) -> None:
        """Refuse what cannot be done with the dataset that is there, None if none is.

        Raises
        ------
        InvalidRequestError
            There is one and it is to be made, or what it was made with is asked to be another, or
            a size or version is none.
        """
        FragmentOptions(
            self.max_rows_per_file,
            self.max_bytes_per_file,
            "2.2" if self.data_storage_version is None else self.data_storage_version,
        )
        if dataset is None:
            return
        if self.mode is Mode.CREATE:
            raise InvalidRequestError(
                f"there is a dataset at {self.uri} already; append to it or overwrite it by the"
                " mode append or overwrite"
            )
        if self.stable_row_ids and not dataset.snapshot.has_stable_row_ids:
            raise InvalidRequestError(
                f"the dataset at {self.uri} was made without stable row ids, which cannot be"
                " changed; make another"
            )
        own = dataset.snapshot.manifest.message.data_format.version
        asked = self.data_storage_version
        if self.mode is Mode.APPEND and asked is not None and asked != own:
            raise InvalidRequestError(
                f"the files of {self.uri} have version {own}, not {asked}; overwrite the dataset"
            )


@dataclass(frozen=True, slots=True)
class Target:
    """What workers have to know of the dataset.

    Parameters
    ----------
    aim
        Columns that rows are converted to.
    schema
        Fields of the data files, with their ids.
    file_version
        Of the data files.
    """

    aim: pa.Schema
    schema: LanceSchema
    file_version: str

    def to_json(self) -> dict[str, str]:
        """Return it as a part of an item."""
        message = schema_message(self.schema).SerializeToString()
        return {
            "aim": base64.b64encode(self.aim.serialize()).decode(),
            "schema": base64.b64encode(message).decode(),
            "file_version": self.file_version,
        }

    @classmethod
    def of_json(cls, data: Mapping[str, str]) -> Target:
        """Return what `to_json` made."""
        message = file_pb2.Schema.FromString(base64.b64decode(data["schema"]))
        schema = schema_from_messages(message.fields, message.metadata, path=_PLACE)
        aim = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(data["aim"])))
        return cls(aim, schema, data["file_version"])


def plan_target(
    place: Place,
    dataset: Dataset | None,
    given: pa.Schema,
    dimensions: Mapping[str, int] | None = None,
) -> Target:
    """Settle what rows become.

    Parameters
    ----------
    place
        Where they go.
    dataset
        What is there; None = nothing.
    given
        Columns as the source has them.
    dimensions
        Columns that are to be vectors, and of how many numbers. Those that the dataset has as
        vectors need not be named.

    Raises
    ------
    InvalidRequestError, UnknownColumnError, TypeMismatchError
        The columns do not fit the dataset, or cannot be vectors.
    UnsupportedFeatureError
        A column has a type that the format does not store.
    """
    place.check(dataset)
    for name, dimension in ({} if dimensions is None else dimensions).items():
        index = given.get_field_index(name)
        if index < 0:
            raise UnknownColumnError(name, given.names, where="the columns of vectors")
        if not is_vector(given.field(index).type):
            given = given.set(index, vector_field(given.field(index), dimension))
    if dataset is not None and place.mode is Mode.APPEND:
        aim = _as_in_table(given, dataset.snapshot.schema)
        fields = matching_fields(aim, dataset.snapshot.schema)
        return Target(aim, fields, file_version_of(dataset.snapshot).value)
    version = _version_of_new(place, dataset)
    given = pa.schema([with_usual_names(each) for each in given], metadata=given.metadata)
    schema = schema_of_new(given, version)
    if dataset is not None:
        message = dataset.snapshot.manifest.message
        schema = numbered_from(schema, smallest_new_id(message, replaces_all=True))
    return Target(given, schema, version.value)


def write_rows(
    place: Place, target: Target, batches: Iterable[pa.RecordBatch]
) -> list[table_pb2.DataFragment]:
    """Write converted rows to new fragments, which no version names yet; runs in a worker."""
    store = open_dataset_store(as_uri(place.uri), place.storage_options)
    sizes = FragmentOptions(place.max_rows_per_file, place.max_bytes_per_file, target.file_version)
    return write_fragments(store, target.schema, fitted(batches, target.schema), sizes)


def commit_rows(
    place: Place,
    dataset: Dataset | None,
    target: Target,
    fragments: Sequence[table_pb2.DataFragment],
    properties: Mapping[str, str],
) -> int:
    """Commit new fragments, in their order, and return the version.

    Parameters
    ----------
    place
        Where they go.
    dataset
        At the version that was planned for; None = there was none.
    target
        Whose fields the fragments have.
    fragments
        As `write_rows` returns them. Where rows are appended and there are none, nothing is
        committed.
    properties
        Of the transaction, with those of the job.

    Raises
    ------
    CommitConflictError
        Others made or changed the dataset in a way that the rows cannot be put on top of.
    """
    operation: Operation = Append(tuple(fragments))
    if dataset is None or place.mode is not Mode.APPEND:
        message = schema_message(target.schema)
        fields, metadata = tuple(message.fields), dict(message.metadata)
        operation = Overwrite(tuple(fragments), fields, metadata)
    elif len(fragments) == 0:
        return dataset.version
    version = 0 if dataset is None else dataset.version
    transaction = Transaction(version, operation, transaction_uuid(properties), dict(properties))
    if dataset is not None:
        snapshot = dataset.snapshot
        return commit(snapshot.scheduler, transaction, open_base=snapshot.open_base).version
    new = NewDataset(file_version=target.file_version, has_stable_row_ids=place.stable_row_ids)
    scheduler = Session().scheduler(as_uri(place.uri), place.storage_options)
    return commit(scheduler, transaction, new=new).version


def with_usual_names(field: pa.Field) -> pa.Field:
    """Call the elements of lists ``item``, as Arrow and other writers do, not as Spark does.

    Examples
    --------
    >>> with_usual_names(pa.field("a", pa.list_(pa.field("element", pa.int8())))).type
    ListType(list<item: int8>)
    """
    kind = field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = with_usual_names(kind.value_field)
        inner = inner.with_name("item") if inner.name == "element" else inner
        return field.with_type((pa.list_ if pa.types.is_list(kind) else pa.large_list)(inner))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([with_usual_names(part) for part in kind]))
    return field


def _version_of_new(place: Place, dataset: Dataset | None) -> FileVersion:
    if place.data_storage_version is not None:
        return FileVersion.of(place.data_storage_version)
    return FileVersion.V2_2 if dataset is None else file_version_of(dataset.snapshot)


def _as_in_table(given: pa.Schema, table: LanceSchema) -> pa.Schema:
    """Give columns the types that the table has, where theirs would be stored in another way."""
    fields = []
    for field in given:
        own = table.top(field.name)
        if own is None:
            fields.append(field)
            continue
        wanted = to_arrow_field(own)
        fields.append(field if _is_stored_so(field, wanted) or own.is_blob else wanted)
    return pa.schema(fields, metadata=given.metadata)


def _is_stored_so(field: pa.Field, wanted: pa.Field) -> bool:
    """Tell whether a column needs no cast to be written as the table's."""
    if field.type.equals(wanted.type, check_metadata=True):  # else names of elements do not count
        return True
    (stored,) = schema_from_arrow(pa.schema([field])).fields
    (own,) = schema_from_arrow(pa.schema([wanted])).fields
    return (stored.logical_type, stored.children) == (own.logical_type, own.children)
