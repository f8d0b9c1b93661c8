"""Writing the live rows of one group of fragments anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.operations.append import file_version_of
from lance_core.operations.compact_rows import live_batches
from lance_core.operations.data_files import discard
from lance_core.operations.write_fragments import FragmentOptions, write_fragments
from lance_core.scan.live_rows import LiveRows
from lance_core.table.row_ids import encode_row_ids
from lance_core.table.row_versions import encode_row_versions
from lance_core.table.stored_lineage import (
    created_at_versions,
    last_updated_at_versions,
    row_ids_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.io.store import ObjectStore
    from lance_core.operations.compact_plan import CompactionTask
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.row_ids import RowIds
    from lance_core.table.row_versions import RowVersions
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """What came of a task; can be pickled.

    Parameters
    ----------
    read_version
        Version whose rows were read.
    old_fragments
        As that version lists them, in the order of the rows.
    new_fragments
        What they became, without ids.
    deleted
        Serialized roaring bitmaps of the old fragments' deleted rows, by fragment id.
    """

    read_version: int
    old_fragments: tuple[table_pb2.DataFragment, ...]
    new_fragments: tuple[table_pb2.DataFragment, ...]
    deleted: Mapping[int, bytes]


def execute_group(files: TableFiles, snapshot: Snapshot, task: CompactionTask) -> RewriteResult:
    """Write the rows of a task's fragments to new ones; nothing is committed.

    Any number of tasks of a plan may be executed at the same time, on any machine that opens the
    version that was planned for.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version that the task was planned for.
    task
        One of the plan.

    Raises
    ------
    InvalidRequestError
        The snapshot is of another version.
    CorruptFileError, UnsupportedFeatureError
        Rows cannot be read, or a column cannot be written. No file is left then.
    """
    if snapshot.version != task.read_version:
        raise InvalidRequestError(
            f"the task was planned for version {task.read_version}, not {snapshot.version}"
        )
    fragments = [snapshot.fragments_by_id[fragment_id] for fragment_id in task.fragment_ids]
    options = FragmentOptions(
        task.options.target_rows_per_fragment,
        task.options.max_bytes_per_file,
        file_version_of(snapshot),
    )
    lineage = _lineage(files, snapshot, fragments) if snapshot.has_stable_row_ids else None
    batches = live_batches(files, snapshot, fragments)
    new = write_fragments(snapshot.scheduler.store, snapshot.schema, batches, options)
    if lineage is not None:
        lineage.give(new)
    messages = {each.id: each for each in snapshot.manifest.message.fragments}
    return RewriteResult(
        snapshot.version,
        tuple(messages[each.id] for each in fragments),
        tuple(new),
        {each.id: files.deleted(snapshot, each).serialize() for each in fragments},
    )


def discard_results(store: ObjectStore, results: Iterable[RewriteResult]) -> None:
    """Delete what was written by tasks whose results are not going to be committed."""
    for result in results:
        discard(store, (file.path for each in result.new_fragments for file in each.files))


@dataclass(frozen=True, slots=True, eq=False)
class _Lineage:
    """Ids and versions of all live rows of a group, shape ``(n,)`` each."""

    row_ids: NDArray[np.uint64]
    created_at: NDArray[np.uint64]
    updated_at: NDArray[np.uint64]

    def give(self, new: Sequence[table_pb2.DataFragment]) -> None:
        """Record them in the fragments that hold the rows now."""
        start = 0
        for fragment in new:
            rows = slice(start, start + fragment.physical_rows)
            fragment.inline_row_ids = encode_row_ids(self.row_ids[rows])
            fragment.inline_created_at_versions = encode_row_versions(self.created_at[rows])
            fragment.inline_last_updated_at_versions = encode_row_versions(self.updated_at[rows])
            start = rows.stop


def _lineage(files: TableFiles, snapshot: Snapshot, old: Sequence[Fragment]) -> _Lineage:
    live = [_live_offsets(files, snapshot, fragment) for fragment in old]
    return _Lineage(
        _values([row_ids_of(files, snapshot, each) for each in old], live),
        _values([created_at_versions(files, snapshot, each) for each in old], live),
        _values([last_updated_at_versions(files, snapshot, each) for each in old], live),
    )


def _live_offsets(files: TableFiles, snapshot: Snapshot, fragment: Fragment) -> NDArray[np.int64]:
    live = LiveRows(fragment.physical_rows, files.deleted(snapshot, fragment))
    return live.select(0, len(live)).row_offsets


def _values(
    sequences: Sequence[RowIds | RowVersions | None], live: Sequence[NDArray[np.int64]]
) -> NDArray[np.uint64]:
    """Return a number per live row of all fragments; 1 where nobody recorded versions."""
    parts = [
        np.ones(len(rows), np.uint64) if sequence is None else sequence.at(rows)
        for sequence, rows in zip(sequences, live, strict=True)
    ]
    return np.concatenate(parts)
