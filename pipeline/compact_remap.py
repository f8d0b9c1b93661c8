"""Letting indices follow a compaction at once: workers write a segment each, before its commit."""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.operations.compact_remap import (
    RewrittenIndex,
    entries_to_remap,
    remapped_entry,
)
from lance_core.operations.row_moves import RowMoves
from lance_core.proto import table_pb2
from lance_core.table.reuse_history import (
    ReuseHistory,
    ReuseVersion,
    history_from_bytes,
    history_to_content,
)
from pipeline.worker import dataset_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.table.reuse_history import ReuseGroup
    from lance_core.table.snapshot import Snapshot
    from pipeline.job import JobContext
    from pipeline.journal import Journal

    Options = Mapping[str, str] | None

STAGE = "remap"
_PATH = "a message of a remap"


@dataclass(frozen=True, slots=True)
class StagedRemap:
    """Writes the segments over compacted fragments anew in a stage of its own.

    What moves is kept in the journal: of many deleted rows it is too long for a message.
    """

    context: JobContext

    def __call__(
        self, snapshot: Snapshot, groups: Sequence[ReuseGroup], memory_bytes: int
    ) -> tuple[RewrittenIndex, ...]:
        """Return what the transaction says of the new segments; errors as `Stages.run`."""
        entries = entries_to_remap(snapshot, groups)
        if len(entries) == 0:
            return ()
        context, name = self.context, f"moves-{uuid.uuid4().hex}.bin"
        history = ReuseHistory((ReuseVersion(snapshot.version, tuple(groups)),))
        context.journal.put(name, history_to_content(history).SerializeToString())
        items = [_item(snapshot.version, name, each) for each in entries]
        worker = partial(
            remap_segment, context.uri, context.storage_options, memory_bytes, context.journal
        )
        results = context.stages.run(STAGE, items, worker)
        return tuple(_rewritten(each) for each in results if each != b"")


def remap_segment(
    uri: str, storage_options: Options, memory_bytes: int, journal: Journal, item: bytes
) -> bytes:
    """Write a segment anew; a worker calls it. Nothing is returned of one that cannot follow."""
    version, name, entry = _parsed(item)
    data = journal.get(name)
    if data is None:
        raise CorruptFileError(name, "is gone from the journal")
    (moved,) = history_from_bytes(data, name).versions
    dataset = dataset_at(uri, version, storage_options)
    moves = RowMoves.of(dataset.session.files, dataset.snapshot, moved.groups)
    found = remapped_entry(moves, entry, memory_bytes)
    return b"" if found is None else found.SerializeToString()


def _item(version: int, name: str, entry: table_pb2.IndexMetadata) -> bytes:
    text = base64.b64encode(entry.SerializeToString()).decode()
    return json.dumps({"version": version, "moves": name, "segment": text}).encode()


def _parsed(item: bytes) -> tuple[int, str, table_pb2.IndexMetadata]:
    try:
        found = json.loads(item)
        data = base64.b64decode(found["segment"], validate=True)
        entry = table_pb2.IndexMetadata.FromString(data)
        return int(found["version"]), str(found["moves"]), entry
    except (ValueError, TypeError, KeyError, DecodeError) as error:
        raise CorruptFileError(_PATH, f"is no item: {error}") from error


def _rewritten(result: bytes) -> RewrittenIndex:
    try:
        return RewrittenIndex.FromString(result)
    except DecodeError as error:
        raise CorruptFileError(_PATH, f"is no result: {error}") from error
