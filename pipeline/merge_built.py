"""Merging segments that no version has yet: the second stage of a build."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING

from lance_core.table.index_upkeep import coverage
from pipeline.index_items import Source, segment_from_bytes
from pipeline.index_job import are_there
from pipeline.plan import neighbours_up_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.proto import table_pb2
    from pipeline.job import JobContext
    from pipeline.journal import Journal

    Segment = table_pb2.IndexMetadata

_STAGE = "merge"


def merged_segments(
    context: JobContext,
    version: int,
    segments: Sequence[Segment],
    merge_to_rows: int,
    memory_bytes: int,
) -> list[Segment]:
    """Merge neighbours by tasks; what an earlier run of the job has merged is taken as it is.

    Parameters
    ----------
    context
        Where the job runs.
    version
        A version that has the rows.
    segments
        Of one index, with different fragments.
    merge_to_rows
        Neighbours are joined as long as they have not more rows than this.
    memory_bytes
        As `merge_segments` takes it.

    Returns
    -------
    list[table_pb2.IndexMetadata]
        In the order of their first fragments.
    """
    source, journal = Source.of(context), context.journal
    dataset = source.open(version)
    ordered = sorted(segments, key=_first_fragment)
    rows = {int(each.id): each.num_live_rows for each in dataset.snapshot.fragments}
    sizes = [sum(rows.get(each, 0) for each in coverage(segment)) for segment in ordered]
    groups = neighbours_up_to(sizes, merge_to_rows)
    inputs = [[ordered[each] for each in group] for group in groups]
    found: list[Segment | None] = []
    for group in inputs:
        stored = None if len(group) == 1 else journal.get(_name(group))
        segment = group[0] if len(group) == 1 else None
        if stored is not None and are_there(dataset, [segment_from_bytes(stored)]):
            segment = segment_from_bytes(stored)
        found.append(segment)
    missing = [place for place, each in enumerate(found) if each is None]
    if len(missing) > 0:
        results = context.stages.run(
            _STAGE,
            [_item(inputs[place]) for place in missing],
            partial(merge_built, source, version, journal, memory_bytes),
            weights=[sum(sizes[each] for each in groups[place]) for place in missing],
        )
        for place, result in zip(missing, results, strict=True):
            found[place] = segment_from_bytes(result)
    return [each for each in found if each is not None]


def merge_built(
    source: Source, version: int, journal: Journal, memory_bytes: int, item: bytes
) -> bytes:
    """Merge segments, and keep the result before it is returned; runs in a worker."""
    segments = [segment_from_bytes(bytes.fromhex(each)) for each in json.loads(item)]
    segment = source.open(version).merge_segments(segments, memory_bytes=memory_bytes)
    data: bytes = segment.SerializeToString()
    journal.put(_name(segments), data)
    return data


def _item(segments: Sequence[Segment]) -> bytes:
    return json.dumps([each.SerializeToString().hex() for each in segments]).encode()


def _name(segments: Sequence[Segment]) -> str:
    """Name what becomes of segments, whoever merges them."""
    return f"merge/{hashlib.sha256(b''.join(each.uuid.uuid for each in segments)).hexdigest()}.bin"


def _first_fragment(segment: Segment) -> int:
    return int(min(coverage(segment), default=-1))
