"""Asking the scalar indices of one version about a filter."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import UnsupportedFeatureError
from lance_core.expr.sargable import index_leaf
from lance_core.query.current_rows import CurrentRows
from lance_core.query.filter_parts import lookups_of, parts_of
from lance_core.query.index_filter import NOTHING_SAID, IndexAnswer, ask_indices
from lance_core.query.plan import SkippedSegment
from lance_core.query.scalar_indices import ScalarIndices
from lance_core.table.frag_reuse import load_frag_reuse

if TYPE_CHECKING:
    from lance_core.expr.tree import Node
    from lance_core.query.deadline import Deadline
    from lance_core.query.filter_parts import Lookup
    from lance_core.query.session import Session
    from lance_core.table.snapshot import Snapshot


class IndexUse(Enum):
    """Whether scalar indices are asked."""

    ALWAYS = "damage is an error"
    IF_SOUND = "do without those that are damaged"
    NEVER = "scan"


def ask_version(
    session: Session, snapshot: Snapshot, test: Node, deadline: Deadline
) -> IndexAnswer:
    """Return what the scalar indices of a version say about a filter.

    Raises
    ------
    CorruptFileError
        An index file is damaged or missing.
    """
    if all(each.is_system for each in snapshot.indices):
        return NOTHING_SAID
    part = parts_of(test, partial(index_leaf, schema=snapshot.schema))
    lookups = list(lookups_of(part))
    try:
        reuse = load_frag_reuse(session.cache, snapshot) if lookups else None
    except UnsupportedFeatureError as error:
        # Nobody can tell where the rows are that index files name.
        return IndexAnswer((), BitMap(), (), tuple(_all_skipped(snapshot, lookups, str(error))))
    return ask_indices(
        part,
        ScalarIndices(session, snapshot, reuse),
        CurrentRows(session.files, snapshot, reuse),
        BitMap(snapshot.fragments_by_id),
        snapshot.scheduler.store,
        partial(deadline.check, "searching scalar indices"),
    )


def _all_skipped(snapshot: Snapshot, lookups: list[Lookup], reason: str) -> list[SkippedSegment]:
    asked_about = {lookup.leaf.field_id for lookup in lookups}
    return [
        SkippedSegment(each.name, each.uuid, reason)
        for each in snapshot.indices
        if not each.is_system and asked_about & set(each.field_ids)
    ]
