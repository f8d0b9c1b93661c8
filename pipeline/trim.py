"""The job ``trim-fri``: indices follow deferred compactions, which can be forgotten then.

Workers write one segment each anew, with the rows under the addresses that they have now; that is
one commit. What no segment needs any more leaves the Fragment Reuse Index by another one.
"""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from pyroaring import BitMap

from lance_core.errors import CommitConflictError, CorruptFileError
from lance_core.file.arguments import checked_number
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import UnusableSegmentError
from lance_core.operations.compact_trim import reuse_growth, trim_reuse_index
from lance_core.operations.remap_indices import follow_segment, segments_left_behind
from lance_core.operations.row_moves import RowMoves
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.proto import table_pb2
from lance_core.table.commit import commit
from lance_core.table.index_metadata import index_from_proto
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import CreateIndex, Transaction
from pipeline.job import ITEM_COUNT, JOB_ID, KIND as KIND_PROPERTY, run_job
from pipeline.parts import part_properties
from pipeline.worker import dataset_at
from pipeline.written_files import are_there, segment_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset import Dataset
    from lance_core.table.snapshot import Snapshot
    from pipeline.job import JobContext
    from pipeline.stages import Worker
    from pipeline.written_files import WrittenFile

    Options = Mapping[str, str] | None

KIND = "trim-fri"
MAX_BYTES = 1 << 20
"""Of a history that every reader loads: more is trimmed whatever the number of compactions."""

_PATH = "a message of a trim"


@dataclass(frozen=True, slots=True)
class TrimReport:
    """What a trim has left.

    Parameters
    ----------
    version
        The dataset after it.
    num_before, num_after
        Deferred compactions in the Fragment Reuse Index.
    """

    version: int
    num_before: int
    num_after: int


def trim_fri(
    context: JobContext,
    *,
    remap: bool = True,
    max_versions: int = 8,
    memory_bytes: int = MEMORY_BYTES,
) -> TrimReport:
    """Let indices follow deferred compactions, and forget those that none needs any more.

    Parameters
    ----------
    context
        Where and how.
    remap
        Whether segments are written anew; otherwise only what they have followed already goes.
    max_versions
        Nothing is done while the Fragment Reuse Index has so many compactions, or fewer, and no
        more than a mebibyte.
    memory_bytes
        As `build_segment` takes it, for each worker.

    Raises
    ------
    InvalidRequestError
        ``max_versions`` is negative, or ``memory_bytes`` less than 1.
    CorruptFileError, UnsupportedFeatureError
        The history contradicts the format, or is tagged.
    LanceError
        As `run_job`.

    Notes
    -----
    Lance table format, section "Writing and trimming". Zone maps and Bloom filters name stretches
    of rows, which cannot be followed: what they need stays until they are built anew.
    """
    checked_number("max_versions", max_versions, 0)
    checked_number("memory_bytes", memory_bytes, 1)
    before = context.open()
    growth = reuse_growth(before.snapshot)
    is_due = growth.num_versions > max_versions or growth.num_bytes > MAX_BYTES
    if not is_due and context.journal.plan() is None:
        return TrimReport(before.version, growth.num_versions, growth.num_versions)
    if remap:
        job = FollowJob(context.uri, context.storage_options, memory_bytes)
        run_job(context, job)
    newest = context.open().snapshot
    if context.dry_run:
        left = growth.num_versions - growth.num_removable
        return TrimReport(newest.version, growth.num_versions, left)
    properties = {JOB_ID: context.job_id, KIND_PROPERTY: KIND, ITEM_COUNT: "0"}
    after = trim_reuse_index(newest, properties=properties)
    return TrimReport(after.version, growth.num_versions, reuse_growth(after).num_versions)


@dataclass(frozen=True, slots=True)
class FollowJob:
    """Writing segments anew, for `run_job`: an item each."""

    uri: str
    storage_options: Options
    memory_bytes: int = MEMORY_BYTES

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return KIND

    def params(self) -> dict[str, object]:
        """Return what was asked for."""
        return {"memory_bytes": self.memory_bytes}

    def plan(self, dataset: Dataset) -> list[bytes]:
        """Return an item per segment that is left behind and can follow."""
        return [_item(dataset.snapshot, each) for each in segments_left_behind(dataset.snapshot)]

    def worker(self) -> Worker:
        """Return what writes a segment anew."""
        return partial(write_followed, self.uri, self.storage_options, self.memory_bytes)

    def describe(self, item: bytes) -> str:
        """Name a segment by its index."""
        found = _parsed(item)
        return f"segment {found['uuid']} of index {found['index']}, {found['rows']} rows"

    def weigh(self, item: bytes) -> int:
        """Return how many rows the fragments of a segment have."""
        rows = _parsed(item)["rows"]
        return rows if isinstance(rows, int) else 0

    def has_files(self, result: bytes) -> bool:
        """Tell whether the files of a new segment are there."""
        return are_there(self.uri, self.storage_options, files_of(result))

    def commit(
        self, dataset: Dataset, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        """Put new segments in the place of the old ones.

        Raises ``CommitConflictError``, to be retried, where others changed an index meanwhile.
        """
        newest = open_snapshot(dataset.snapshot.scheduler, None, dataset.snapshot.open_base)
        present = {each.uuid for each in newest.indices}
        followed = [_Followed.parse(each) for each in results]
        work = [each for each in followed if each.new is not None and each.new_uuid not in present]
        standing = [each for each in work if each.old in present]
        num_lost = len(work) - len(standing)
        if len(standing) == 0 and num_lost == 0:
            return newest.version
        part = part_properties(properties)
        version = None if num_lost > 0 else _replaced(dataset.snapshot, standing, properties)
        if version is not None:
            return version
        for name in sorted({each.index for each in standing}):
            own = [each for each in standing if each.index == name]
            if _replaced(dataset.snapshot, own, part) is None:
                num_lost += len(own)
        raise CommitConflictError(
            f"others changed {num_lost} of {len(results)} segments",
            version=newest.version,
            is_retryable=True,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Followed:
    """What came of a segment: the new one, None with a reason where it cannot follow."""

    old: str
    index: str
    new: table_pb2.IndexMetadata | None
    reason: str | None

    @property
    def new_uuid(self) -> str | None:
        return None if self.new is None else str(uuid.UUID(bytes=self.new.uuid.uuid))

    def to_bytes(self) -> bytes:
        data = None if self.new is None else self.new.SerializeToString()
        text = None if data is None else base64.b64encode(data).decode()
        facts = {"uuid": self.old, "index": self.index, "new": text, "reason": self.reason}
        return json.dumps(facts).encode()

    @classmethod
    def parse(cls, data: bytes) -> _Followed:
        found = _parsed(data)
        try:
            text, reason = found["new"], found["reason"]
            new = None if text is None else base64.b64decode(str(text), validate=True)
            return cls(
                str(found["uuid"]),
                str(found["index"]),
                None if new is None else table_pb2.IndexMetadata.FromString(new),
                None if reason is None else str(reason),
            )
        except (KeyError, ValueError, DecodeError) as error:
            raise CorruptFileError(_PATH, f"is no result: {error}") from error


def files_of(result: bytes) -> list[WrittenFile]:
    """Return the files of a new segment, none where there is none."""
    new = _Followed.parse(result).new
    return [] if new is None else segment_files(new)


def write_followed(uri: str, storage_options: Options, memory_bytes: int, item: bytes) -> bytes:
    """Write a segment anew, with rows under the addresses of a version; a worker calls it."""
    found = _parsed(item)
    dataset = dataset_at(uri, int(str(found["read_version"])), storage_options)
    old, index = str(found["uuid"]), str(found["index"])
    moves = RowMoves.of(dataset.session.files, dataset.snapshot)
    try:
        new = follow_segment(moves, _entry(dataset.snapshot, old), memory_bytes)
    except UnusableSegmentError as error:
        return _Followed(old, index, None, error.reason).to_bytes()
    return _Followed(old, index, new, None).to_bytes()


def _replaced(
    snapshot: Snapshot, followed: Sequence[_Followed], properties: Mapping[str, str]
) -> int | None:
    """Commit new segments in place of old ones; return the version, None after a conflict."""
    operation = CreateIndex(
        tuple(each.new for each in followed if each.new is not None),
        tuple(_entry(snapshot, each.old) for each in followed),
    )
    transaction = Transaction(snapshot.version, operation, properties=properties)
    try:
        return commit(snapshot.scheduler, transaction, open_base=snapshot.open_base).version
    except CommitConflictError as error:
        if not error.is_retryable:
            raise
        return None


def _item(snapshot: Snapshot, entry: table_pb2.IndexMetadata) -> bytes:
    segment = index_from_proto(entry, snapshot.manifest.path)
    sizes = {int(each.id): each.physical_rows for each in snapshot.fragments}
    covered = effective_coverage(
        segment, BitMap(sizes), reuse_of(snapshot.scheduler, snapshot.manifest)
    )
    return json.dumps(
        {
            "read_version": snapshot.version,
            "uuid": segment.uuid,
            "index": segment.name,
            "rows": sum(sizes[each] for each in covered),
        }
    ).encode()


def _entry(snapshot: Snapshot, segment: str) -> table_pb2.IndexMetadata:
    """Return the entry of a segment as the manifest has it."""
    entries = snapshot.manifest.index_section.indices
    for metadata, entry in zip(snapshot.indices, entries, strict=True):
        if metadata.uuid == segment:
            return entry
    raise CorruptFileError(_PATH, f"version {snapshot.version} has no segment {segment}")


def _parsed(data: bytes) -> dict[str, object]:
    try:
        found = json.loads(data)
    except ValueError as error:
        raise CorruptFileError(_PATH, f"is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise CorruptFileError(_PATH, "is no JSON object")
    return found
