"""What index jobs send to workers and get back: where things are, items, segments, models."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError, InvalidRequestError, ObjectNotFoundError
from lance_core.index.vector.build.model_bytes import model_from_bytes
from lance_core.proto import table_pb2
from lance_core.table.dataset_stores import open_file_beside
from pipeline.worker import dataset_at, report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.dataset import Dataset
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from pipeline.job import JobContext

_MAX_MODEL_BYTES = 1 << 32


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset as workers open it.

    Parameters
    ----------
    uri
        The dataset.
    storage_options
        Of its store, as pairs; None = from the environment.
    """

    uri: str
    storage_options: tuple[tuple[str, str], ...] | None = None

    @classmethod
    def of(cls, context: JobContext) -> Source:
        """Return the dataset of a job."""
        options = context.storage_options
        return cls(context.uri, None if options is None else tuple(sorted(options.items())))

    @property
    def options(self) -> Mapping[str, str] | None:
        """Configuration of the store."""
        return None if self.storage_options is None else dict(self.storage_options)

    def open(self, version: int) -> Dataset:
        """Open a version, or return the one that this process has opened already."""
        return dataset_at(self.uri, version, self.options)


@dataclass(frozen=True, slots=True)
class IndexItem:
    """A segment to be written.

    Parameters
    ----------
    version
        The version that is read.
    fragments
        Fragments whose rows are read.
    segments
        UUIDs of committed segments whose rows go into the new one as they are.
    num_rows
        About how many rows that are.
    """

    version: int
    fragments: tuple[int, ...]
    segments: tuple[str, ...] = ()
    num_rows: int = 0

    def to_bytes(self) -> bytes:
        """Return the item as `parse` takes it."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes) -> IndexItem:
        """Return the item that bytes are of."""
        found = json.loads(data)
        return cls(
            int(found["version"]),
            tuple(map(int, found["fragments"])),
            tuple(map(str, found["segments"])),
            int(found["num_rows"]),
        )

    def progress(self) -> Progress:
        """Return what tells the driver how many rows are done."""
        return partial(_report, self.num_rows)

    def __str__(self) -> str:
        parts = []
        if len(self.fragments) > 0:
            first, last = self.fragments[0], self.fragments[-1]
            parts.append(f"fragment {first}" if first == last else f"fragments {first} to {last}")
        if len(self.segments) > 0:
            parts.append(f"segments {', '.join(each[:8] for each in self.segments)}")
        return " and ".join(parts) if parts else "no fragments"


def request_of(index: NewIndex) -> dict[str, object]:
    """Return an index that is asked for as JSON has it.

    Raises ``InvalidRequestError`` where a parameter is no JSON, such as an array.
    """
    given = {key: each for key, each in index.parameters.items() if each is not None}
    try:
        json.dumps(given)
    except TypeError as error:
        raise InvalidRequestError(
            f"parameters of jobs are numbers, texts and lists of such: {error}; store a model"
            " by lance_core.index.vector.build.model_bytes to give arrays"
        ) from error
    return {
        "index": index.name,
        "column": index.column,
        "index_type": index.index_type.upper(),
        "parameters": given,
    }


def segment_from_bytes(data: bytes) -> table_pb2.IndexMetadata:
    """Return the segment that a worker described.

    Raises ``CorruptFileError`` if the bytes, which a journal kept, are no such description.
    """
    try:
        return table_pb2.IndexMetadata.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("a result of the job", f"is no segment: {error}") from error


def read_object(uri: str, storage_options: Mapping[str, str] | None = None) -> bytes | None:
    """Return what an object holds, None if there is none."""
    store, name = open_file_beside(uri, storage_options)
    try:
        meta = store.head(name)
        if meta.size > _MAX_MODEL_BYTES:
            raise CorruptFileError(uri, f"has {meta.size} bytes, more than a model has")
        return bytes(store.get_range(name, 0, meta.size))
    except ObjectNotFoundError:
        return None


@lru_cache(maxsize=2)
def model_at(uri: str, storage_options: tuple[tuple[str, str], ...] | None) -> VectorModel:
    """Return a model that `train_model` stored; a process reads it once.

    Raises
    ------
    ObjectNotFoundError
        There is none.
    InvalidRequestError
        It is no model.
    """
    data = read_object(uri, None if storage_options is None else dict(storage_options))
    if data is None:
        raise ObjectNotFoundError(f"there is no model {uri}")
    return model_from_bytes(data)


def _report(num_rows: int, done: int, total: int) -> None:
    report(num_rows * done // max(total, 1))
