"""Micro-batches: what tasks write of them, and the commit of it all; no Spark is needed here."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lance_core.dataset import open_dataset
from lance_core.errors import CommitConflictError, InvalidRequestError
from lance_core.proto import table_pb2
from lance_core.schema.to_proto import schema_message
from lance_core.table.transaction import Append, Overwrite
from pipeline.datasource_options import STORAGE, path_of, storage_options_of
from pipeline.stream_commit import Outcome, Stream, commit_epoch
from pipeline.table_write import plan_write

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from lance_core.dataset import Dataset
    from lance_core.table.snapshot import Snapshot
    from pipeline.stream_commit import Watermark
    from pipeline.table_write import TableWrite

_KEPT_STREAMS = 64
_QUERY_ID, _CHECKPOINT = "queryid", "checkpointlocation"
_OF_STREAMS = (_QUERY_ID, _CHECKPOINT, "jobid")


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """Where the rows of a stream go; a value that workers get.

    Parameters
    ----------
    options
        Of the data source, by lower-case names, as pairs; see `datasource_options`.
    query_id
        Name of the stream; None = Spark's own.
    checkpoint
        Where the stream keeps how far it is; empty where that is unknown.

    Raises
    ------
    InvalidRequestError
        A stream that is given a name does not say where its checkpoint is.
    """

    options: tuple[tuple[str, str], ...]
    query_id: str | None = None
    checkpoint: str = ""

    def __post_init__(self) -> None:
        if self.query_id is not None and self.checkpoint == "":
            raise InvalidRequestError(
                f"queryId is {self.query_id!r} without a checkpoint, by which two streams of one"
                " name are told apart; give its location"
            )

    @classmethod
    def of(
        cls,
        uri: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        query_id: str | None = None,
        checkpoint: str = "",
        vectors: Mapping[str, int] | None = None,
    ) -> StreamTarget:
        """Return the target at a place, with options of its store and columns of vectors."""
        stores = {} if storage_options is None else storage_options
        dimensions = {} if vectors is None else vectors
        options = {f"{STORAGE}{name}": value for name, value in stores.items()}
        options["path"] = uri
        options["vectors"] = ",".join(f"{name}={size}" for name, size in dimensions.items())
        return cls(tuple(sorted(options.items())), query_id, checkpoint)

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> StreamTarget:
        """Return what a user of the data source has named."""
        own = {name: value for name, value in options.items() if name not in _OF_STREAMS}
        checkpoint = options.get(_CHECKPOINT, "")
        return cls(tuple(sorted(own.items())), options.get(_QUERY_ID), checkpoint)

    def open(self, version: int) -> Dataset:
        """Open the dataset at a version."""
        options = dict(self.options)
        stores = dict(storage_options_of(options))
        return open_dataset(path_of(options), version, storage_options=stores or None)


def planned_write(target: StreamTarget, rows: pa.Schema) -> TableWrite:
    """Settle what rows become; the dataset is made without rows if there is none.

    Parameters
    ----------
    target
        The dataset; columns that it names as vectors become some.
    rows
        Columns as Spark hands them to Python, with its metadata.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
        The columns do not fit the dataset, or cannot be stored.
    """
    options = dict(target.options)
    write = plan_write(options, rows, replaces_all=False)
    if write.read_version > 0:
        return write
    with suppress(CommitConflictError):  # another driver has made it meanwhile
        write.commit([])
    return plan_write(options, rows, replaces_all=False)


@dataclass(frozen=True, slots=True)
class EpochPart:
    """What one task wrote of a micro-batch.

    Parameters
    ----------
    query_id
        Spark's name of the query, the same as long as it has its checkpoint; None outside of one.
    version
        The version that the rows were written for.
    fragments
        Serialized messages, without ids; none where there were no rows.
    """

    query_id: str | None
    version: int
    fragments: tuple[bytes, ...]


def write_part(
    write: TableWrite, query_id: str | None, batches: Iterable[pa.RecordBatch]
) -> EpochPart:
    """Write the rows of one task; runs in a worker.

    Raises
    ------
    InvalidRequestError
        The rows do not fit the table. Nothing of them is left then.
    """
    return EpochPart(query_id, write.read_version, tuple(write.write(batches)))


def commit_parts(
    target: StreamTarget, parts: Sequence[EpochPart], number: int, *, replaces_all: bool
) -> Outcome:
    """Commit what tasks wrote of a micro-batch, unless it is there; what failed is deleted by none.

    Parameters
    ----------
    target
        The dataset.
    parts
        In the order that their rows are to have.
    number
        Of the micro-batch.
    replaces_all
        Whether it replaces all rows.

    Raises
    ------
    InvalidRequestError
        Tasks ran in no query and the target gives no name.
    LanceError
        As `commit_epoch`.
    """
    if len(parts) == 0:
        return Outcome(None)
    name = parts[0].query_id if target.query_id is None else target.query_id
    if name is None:
        raise InvalidRequestError("rows that are no micro-batch of a query need a query_id")
    version = min(part.version for part in parts)  # what came after it, all are held against
    snapshot = target.open(version).snapshot
    fragments = tuple(
        table_pb2.DataFragment.FromString(each) for part in parts for each in part.fragments
    )
    operation = _overwrite(snapshot, fragments) if replaces_all else Append(fragments)
    stream, memory = Stream(name, target.checkpoint), _memory(path_of(dict(target.options)), name)
    outcome = commit_epoch(
        snapshot, stream, number, operation, num_items=len(parts), seen=memory.seen
    )
    memory.seen = outcome.watermark
    return outcome


def _overwrite(snapshot: Snapshot, fragments: tuple[table_pb2.DataFragment, ...]) -> Overwrite:
    message = schema_message(snapshot.schema)
    return Overwrite(fragments, tuple(message.fields), dict(message.metadata))


@dataclass(slots=True)
class _Memory:
    """What this process has seen of a stream."""

    seen: Watermark | None = None


@lru_cache(maxsize=_KEPT_STREAMS)
def _memory(uri: str, query_id: str) -> _Memory:
    return _Memory()
