"""Trimming a reuse history changes no answer of any index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, strategies as st
from pyroaring import BitMap

from lance_core.ids import FieldId
from lance_core.row_address import fragment_of
from lance_core.table.index_metadata import IndexMetadata
from lance_core.table.reuse_map import AddressMap
from lance_core.table.reuse_trim import trimmed
from tests.reuse_histories import Compactions, random_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.table.reuse_history import ReuseHistory


@dataclass
class Segment:
    """Addresses that an index was built from, and its entry."""

    addresses: NDArray[np.uint64]
    metadata: IndexMetadata


def build(table: Compactions, rng: np.random.Generator) -> Segment:
    """Build an index on some fragments of the version."""
    fragments = [fragment for fragment in table.rows if rng.random() < 0.7]
    addresses = [
        fragment << 32 | offset
        for fragment in fragments
        for offset, row in enumerate(table.rows[fragment])
        if row is not None
    ]
    metadata = IndexMetadata(
        uuid="",
        name="k_idx",
        field_ids=(FieldId(1),),
        dataset_version=table.version,
        fragment_bitmap=BitMap(fragments),
        type_name="BTreeIndexDetails",
        details=b"",
        index_version=0,
        created_at_ms=None,
        files=(),
        base_id=None,
    )
    return Segment(np.array(addresses, np.uint64), metadata)


def led_on(segment: Segment, history: ReuseHistory) -> Segment:
    """Store the bitmap as pylance's commits do."""
    stored = segment.metadata.fragment_bitmap
    assert stored is not None
    values = {name: getattr(segment.metadata, name) for name in IndexMetadata.__slots__}
    values["fragment_bitmap"] = history.fold(stored)
    return Segment(segment.addresses, IndexMetadata(**values))


def answers(
    segment: Segment, history: ReuseHistory, table: Compactions
) -> tuple[BitMap, list[int]]:
    """Return what the segment covers and which rows it finds."""
    stored = segment.metadata.fragment_bitmap
    assert stored is not None
    covered = history.fold(stored) & BitMap(table.rows)
    mapped = AddressMap(history, "x").map_addresses(segment.addresses)
    found = mapped[np.isin(fragment_of(mapped), np.array(covered.to_array()))]
    return covered, sorted(found.tolist())


@given(seed=st.integers(0, 2**32 - 1))
def test_trimming_changes_no_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = Compactions()
    segments: list[Segment] = []
    for _ in range(25):
        random_step(table, rng, max_rows=20)
        event = rng.random()
        if event < 0.2:
            segments.append(build(table, rng))
        elif event < 0.4:
            segments = [led_on(each, table.history) for each in segments]
        elif event < 0.6 and segments:
            del segments[int(rng.integers(len(segments)))]
        elif event < 0.8:
            before = [answers(each, table.history, table) for each in segments]
            left = trimmed(table.history, [each.metadata for each in segments])
            table.versions = list(left.versions)
            assert [answers(each, left, table) for each in segments] == before
