"""What becomes of the indices on rows that a compaction moves."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import LanceError, UnsupportedFeatureError, VersionNotFoundError
from lance_core.file.reader import LanceFileReader
from lance_core.index.coverage import effective_coverage
from lance_core.index.registry import Unusable, classify
from lance_core.operations.compact_config import compaction_setting, truth
from lance_core.table.index_upkeep import stores_row_ids
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lance_core.proto import table_pb2
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot

_VECTOR_TYPES = frozenset(("vectorindexdetails", ""))
"""Old writers left the type out; then the files tell."""

_MODEL_FILE = "index.idx"
_DECLARATION = "lance:index"
_GRAPH = "HNSW"


class IndexTreatment(enum.StrEnum):
    """How indices follow the rows that a compaction moves."""

    DEFER = "defer"
    """Their files stay; the Fragment Reuse Index says where rows are now.

    Nothing is said of rows that no index is on.
    """

    DROP_COVERAGE = "drop_coverage"
    """They answer no longer for the new fragments, which are scanned until indexed again."""

    REMAP = "remap"
    """Their files are written anew, with the new row addresses.

    Those of zone maps and Bloom filters cannot be: such indices lose coverage.
    """

    @classmethod
    def of_config(cls, config: Mapping[str, str]) -> IndexTreatment:
        """Return what a dataset's configuration asks for; ``REMAP`` where it says nothing.

        Raises
        ------
        InvalidRequestError
            The value cannot be understood.
        """
        defers = compaction_setting(config, "defer_index_remap", truth)
        return cls.DEFER if defers is True else cls.REMAP


def check_treatment(snapshot: Snapshot, moved: BitMap, treatment: IndexTreatment) -> None:
    """Refuse a compaction that indices could not follow in the way wanted.

    Parameters
    ----------
    snapshot
        The version that is compacted.
    moved
        Ids of the fragments to be written anew.
    treatment
        The way.

    Raises
    ------
    UnsupportedFeatureError
        Deferred where rows have stable ids, or where an HNSW index covers moved fragments of which
        rows were deleted since it was built; remapped where a segment of a kind that this release
        does not write covers moved fragments. Names another way.

    Notes
    -----
    Lance table format, sections "Untagged FRI" and "Tagged FRI"; vector index page, section "Row
    ids": pylance 14.0.2 fails on an HNSW index whose rows were left out by a deferred compaction.
    """
    if treatment is IndexTreatment.DEFER:
        _check_deferred(snapshot, moved)
    elif treatment is IndexTreatment.REMAP:
        for segment, _ in segments_over(snapshot, moved):
            kind = classify(segment)
            if isinstance(kind, Unusable):
                raise UnsupportedFeatureError(
                    f'index "{segment.name}" cannot be written anew: {kind.reason}; take the index'
                    ' treatment "defer" or "drop_coverage"'
                )


def _check_deferred(snapshot: Snapshot, moved: BitMap) -> None:
    if snapshot.has_stable_row_ids:
        raise UnsupportedFeatureError(
            "a compaction cannot be deferred where rows have stable ids: no reader would follow"
            ' it; take the index treatment "drop_coverage", which keeps indices of row ids'
        )
    for name in graphs_over_deletions(snapshot, moved):
        raise UnsupportedFeatureError(
            f'index "{name}" is a graph that holds rows deleted since; pylance could'
            " not search it after a deferred compaction; take the index treatment"
            ' "drop_coverage", or build the index anew first'
        )


def graphs_over_deletions(snapshot: Snapshot, moved: BitMap) -> Mapping[str, BitMap]:
    """Return the HNSW indices that stand in the way of a deferred compaction.

    Parameters
    ----------
    snapshot
        The version that is compacted.
    moved
        Ids of the fragments to be written anew.

    Returns
    -------
    Mapping[str, BitMap]
        By name: those of the fragments that the index covers and of which rows were deleted since
        it was built; a graph never had those deleted before.
    """
    found: dict[str, BitMap] = {}
    deletions = {
        each.id: each.deletion_file
        for each in snapshot.manifest.message.fragments
        if each.id in moved and each.HasField("deletion_file")
    }
    if len(deletions) == 0:
        return found
    live = BitMap(snapshot.fragments_by_id)
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    for segment, _ in segments_over(snapshot, BitMap(deletions)):
        if is_graph(snapshot, segment):
            built = deletions_at(snapshot, segment.dataset_version)
            covered = effective_coverage(segment, live, history) & BitMap(deletions)
            since = BitMap(each for each in covered if deletions[each] != built.get(each))
            if len(since) > 0:
                found[segment.name] = found.get(segment.name, BitMap()) | since
    return found


def deletions_at(snapshot: Snapshot, version: int) -> Mapping[int, table_pb2.DeletionFile]:
    """Return the deletion files of a version by fragment; none of one that is gone."""
    try:
        read = open_snapshot(snapshot.scheduler, version, snapshot.open_base)
    except VersionNotFoundError:
        return {}
    fragments = read.manifest.message.fragments
    return {each.id: each.deletion_file for each in fragments if each.HasField("deletion_file")}


def segments_over(
    snapshot: Snapshot, moved: BitMap
) -> Iterator[tuple[IndexMetadata, table_pb2.IndexMetadata]]:
    """Yield the segments that name rows of some of the fragments by their addresses.

    Each twice: as a value, and as the manifest has it.
    """
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    live = BitMap(snapshot.fragments_by_id)
    entries = snapshot.manifest.index_section.indices
    for segment, entry in zip(snapshot.indices, entries, strict=True):
        if segment.is_system or (snapshot.has_stable_row_ids and stores_row_ids(entry)):
            continue
        if effective_coverage(segment, live, history).intersect(moved):
            yield segment, entry


def is_graph(snapshot: Snapshot, segment: IndexMetadata) -> bool:
    """Tell whether a segment is one of the HNSW kinds; files that cannot be read are none."""
    if segment.type_name.lower() not in _VECTOR_TYPES:
        return False
    place = snapshot.index_place(segment).below(_MODEL_FILE)
    try:
        metadata = LanceFileReader.open(place.scheduler, place.path).schema.metadata
        declared = json.loads(metadata.get(_DECLARATION, "{}"))
    except (LanceError, ValueError, RecursionError):
        return False
    return isinstance(declared, dict) and _GRAPH in str(declared.get("type"))
