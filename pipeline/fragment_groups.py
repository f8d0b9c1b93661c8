"""Fragments of a dataset, grouped into items of index jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.index_items import IndexItem
from pipeline.plan import FragmentSize, group_fragments

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lance_core.dataset import Dataset
    from pipeline.plan import GroupSizes


def fragment_sizes(dataset: Dataset, fragments: BitMap) -> list[FragmentSize]:
    """Return fragments with their live rows."""
    snapshot, files = dataset.snapshot, dataset.session.files
    return [
        FragmentSize(int(each.id), files.num_live_rows(snapshot, each))
        for each in snapshot.fragments
        if each.id in fragments
    ]


def group_items(dataset: Dataset, fragments: BitMap, sizes: GroupSizes) -> list[bytes]:
    """Return an item for each group of fragments; of none one without any.

    An index of no rows is an entry that waits for some.
    """
    known = fragment_sizes(dataset, fragments)
    rows = {each.id: each.num_rows for each in known}
    items = [
        IndexItem(dataset.version, tuple(group), num_rows=sum(rows[each] for each in group))
        for group in group_fragments(known, sizes)
    ]
    return [each.to_bytes() for each in items or [IndexItem(dataset.version, ())]]
