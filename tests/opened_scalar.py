"""Scalar index segments that pylance built, opened by us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lance_core.cache.byte_cache import ByteCache
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyroaring import BitMap

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.answer import RowAnswer
    from lance_core.index.scalar.segment import ScalarSegment
    from lance_core.io.store import ObjectStore

CACHE_BYTES = 64 << 20


def open_segments(
    place: Path | ObjectStore, name: str | None = None, cache: ByteCache | None = None
) -> list[ScalarSegment]:
    """Open the segments of the latest version of a dataset, of all indices or of one."""
    store = open_store(str(place)) if isinstance(place, Path) else place
    snapshot = open_snapshot(RangeScheduler(store))
    kept = ByteCache(CACHE_BYTES) if cache is None else cache
    return [
        open_scalar_segment(
            snapshot.index_place(index), index, kept, snapshot.schema.by_id(index.field_ids[0])
        )
        for index in snapshot.indices
        if name is None or index.name == name
    ]


def ask(segment: ScalarSegment, query: LeafQuery, *, with_nulls: bool = False) -> RowAnswer:
    assert segment.supports(query)
    return segment.search(query, with_nulls=with_nulls, check=lambda: None)


def names(rows: Mapping[int, BitMap]) -> list[int]:
    """Return the addresses or row ids of a set."""
    return sorted(key << 32 | offset for key, bitmap in rows.items() for offset in bitmap)
