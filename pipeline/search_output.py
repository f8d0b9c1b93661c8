"""Where the answers of a batch of queries go: a folder of Parquet files, or a new dataset.

A block of queries has one Parquet file, written at once, whose name tells the block. So a block
that is answered twice, after a failure or by a process that was taken for dead, replaces its file
by an equal one. Of a dataset each attempt writes fragments of its own, and one commit takes those
of one attempt for each block.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lance_core.dataset import open_dataset
from lance_core.errors import DatasetNotFoundError, InvalidRequestError, ObjectNotFoundError
from lance_core.query.answer_shape import QUERY_INDEX
from lance_core.table.dataset_stores import open_file_beside, open_folder_beside, uri_of_files
from pipeline.ingest_items import Written, joined
from pipeline.ingest_target import Mode, Place, commit_rows, plan_target, write_rows
from pipeline.search_queries import QUERY_ID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.io.store import ObjectStore

RANK = "rank"
_DONE = "_SUCCESS"
_RESERVED = ("_distance", "_rowid", "_rowaddr", "_rowoffset")


class AnswerOutput(Protocol):
    """Where answers are written to; small, as it is sent along with each block."""

    @property
    def uri(self) -> str:
        """The place, as users write it."""

    def check_free(self) -> None:
        """Raise ``InvalidRequestError`` if something is there that is not to be replaced."""

    def write(self, block: int, table: pa.Table) -> bytes:
        """Write the answers of a block, in a worker; return what `finish` has to know."""

    def finish(self, results: Sequence[bytes], properties: Mapping[str, str]) -> None:
        """Publish the answers, in the driver; may be called again after a crash.

        Parameters
        ----------
        results
            What `write` returned, block by block.
        properties
            Name the job.
        """


@dataclass(frozen=True, slots=True)
class ParquetOutput:
    """A folder that is to hold one Parquet file per block of queries.

    Parameters
    ----------
    uri
        The folder.
    storage_options
        Of its store, as pairs.
    """

    uri: str
    storage_options: tuple[tuple[str, str], ...] = ()

    def check_free(self) -> None:
        """Make sure that nothing is there which answers could be mixed with.

        Raises
        ------
        InvalidRequestError
            There is a file, or the folder is not empty.
        """
        _check_empty(self.uri, self.storage_options)

    def write(self, block: int, table: pa.Table) -> bytes:
        """Write the answers of a block; nothing is left to be told."""
        sink = io.BytesIO()
        pq.write_table(table, sink)
        self._store.put(f"part-{block:08d}.parquet", sink.getvalue())
        return b""

    def finish(self, results: Sequence[bytes], properties: Mapping[str, str]) -> None:
        """Say that all blocks are there."""
        del results, properties  # files say nothing of the job
        self._store.put(_DONE, b"")

    @property
    def _store(self) -> ObjectStore:
        return open_folder_beside(self.uri, dict(self.storage_options))


@dataclass(frozen=True, slots=True)
class LanceOutput:
    """A dataset that is made of the answers.

    Names that belong to every dataset lose their underscore: its columns are ``distance``,
    ``rowid`` and ``rowaddr``.

    Parameters
    ----------
    uri
        The dataset.
    storage_options
        Of its store, as pairs.
    """

    uri: str
    storage_options: tuple[tuple[str, str], ...] = ()

    def check_free(self) -> None:
        """Make sure that there is no dataset.

        Raises
        ------
        InvalidRequestError
            There is one, or the place is taken by something else.
        """
        try:
            dataset = open_dataset(self.uri, storage_options=self._place.storage_options)
        except DatasetNotFoundError:
            _check_empty(self.uri, self.storage_options)
            return
        self._place.check(dataset)

    def write(self, block: int, table: pa.Table) -> bytes:
        """Write the answers of a block to fragments; return these, and what columns they have."""
        del block
        renamed = table.rename_columns(
            [name.removeprefix("_") if name in _RESERVED else name for name in table.column_names]
        )
        target = plan_target(self._place, None, renamed.schema)
        fragments = write_rows(self._place, target, renamed.to_batches())
        return Written(target, tuple(fragments)).to_bytes()

    def finish(self, results: Sequence[bytes], properties: Mapping[str, str]) -> None:
        """Commit the fragments of all blocks, unless that was done."""
        written = joined(Written.of(each) for each in results)
        commit_rows(self._place, None, written.target, written.fragments, properties)

    @property
    def _place(self) -> Place:
        return Place(self.uri, dict(self.storage_options) or None, Mode.CREATE)


def _check_empty(uri: str, storage_options: tuple[tuple[str, str], ...]) -> None:
    """Make sure that there is neither a file nor a folder with anything in it."""
    place, options = uri_of_files(uri), dict(storage_options)
    if _is_file(place, options):
        raise InvalidRequestError(f"{uri} is a file; name a folder, which need not be there")
    first = next(iter(open_folder_beside(place, options).list_tree("")), None)
    if first is not None:
        raise InvalidRequestError(
            f"{uri} is not empty: it has {first.path}; give a folder of its own"
        )


def _is_file(place: str, storage_options: Mapping[str, str]) -> bool:
    try:
        folder, name = open_file_beside(place, storage_options)
    except InvalidRequestError:  # the root of a store
        return False
    try:
        folder.head(name)
    except ObjectNotFoundError:
        return False
    return True


def named_answers(answer: pa.Table, ids: pa.Array) -> pa.Table:
    """Put the name of its query before each row of an answer, and its place among the query's rows.

    Parameters
    ----------
    answer
        Rows with ``query_index`` as first column, ascending.
    ids
        Names of the queries, shape ``(n,)``.

    Returns
    -------
    pa.Table
        ``query_id``, ``rank`` from 0, and the other columns.

    Raises
    ------
    InvalidRequestError
        A column of the answer has one of the two names.
    """
    index = answer.column(QUERY_INDEX).to_numpy()
    others = answer.drop([QUERY_INDEX])
    taken = {QUERY_ID, RANK} & set(others.column_names)
    if taken:
        raise InvalidRequestError(
            f"the answers have columns {QUERY_ID} and {RANK} of their own, so no column of the"
            f" table may be called {' or '.join(sorted(taken))}"
        )
    starts = np.searchsorted(index, np.arange(len(ids)))
    ranks = np.arange(len(index)) - starts[index]
    names = [QUERY_ID, RANK, *others.column_names]
    columns = [ids.take(pa.array(index)), pa.array(ranks.astype(np.int32)), *others.columns]
    fields = [
        pa.field(QUERY_ID, ids.type),
        pa.field(RANK, pa.int32()),
        *(pa.field(name, others.schema.field(name).type) for name in names[2:]),
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
