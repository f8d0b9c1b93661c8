"""What is counted of a table: the answers of ``stats`` and of ``coverage``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.index.coverage import claimed_fragments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.dataset import Dataset
    from lance_core.query.index_statistics import IndexStatistics
    from lance_core.table.snapshot import Snapshot

_SMALL_ROWS = 100_000
_QUARTERS, _HUNDREDTHS = 4, 100


def table_statistics(dataset: Dataset) -> dict[str, object]:
    """Return the answer of ``stats``, from the manifest alone.

    Notes
    -----
    As embedded lancedb 0.40.0 counts: bytes of the files of data and of indices, rows of fragments
    with those that are deleted.
    """
    snapshot = dataset.snapshot
    lengths = sorted(each.physical_rows for each in snapshot.fragments)
    indices = [each for each in snapshot.indices if not each.is_system]
    return {
        "total_bytes": _num_bytes(snapshot),
        "num_rows": dataset.count_rows(),
        "num_indices": len({each.name for each in indices}),
        "fragment_stats": {
            "num_fragments": len(lengths),
            "num_small_fragments": sum(each < _SMALL_ROWS for each in lengths),
            "lengths": _summary(lengths),
        },
    }


def _num_bytes(snapshot: Snapshot) -> int:
    data = (file.size for fragment in snapshot.fragments for file in fragment.data_files)
    indices = (file.size for each in snapshot.indices if not each.is_system for file in each.files)
    return sum(size for size in data if size is not None) + sum(indices)


def _summary(lengths: Sequence[int]) -> dict[str, int]:
    """Return figures of sorted lengths; all are 0 where there are none."""
    num = len(lengths)
    if num == 0:
        return dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 0)
    return {
        "min": lengths[0],
        "max": lengths[-1],
        "mean": sum(lengths) // num,
        "p25": lengths[num // _QUARTERS],
        "p50": lengths[num // 2],
        "p75": lengths[3 * num // _QUARTERS],
        "p99": lengths[99 * num // _HUNDREDTHS],
    }


def table_coverage(dataset: Dataset) -> dict[str, object]:
    """Return the answer of ``coverage``: what each index covers, and why not the rest."""
    snapshot = dataset.snapshot
    return {
        "version": dataset.version,
        "fragments": [
            {
                "id": each.id,
                "rows": each.physical_rows,
                "deleted": each.physical_rows - dataset.session.files.num_live_rows(snapshot, each),
            }
            for each in snapshot.fragments
        ],
        "indices": [_coverage_of(each, snapshot) for each in dataset.list_indices()],
    }


def _coverage_of(index: IndexStatistics, snapshot: Snapshot) -> dict[str, object]:
    used = [each for each in index.segments if each.unused is None]
    covered = sorted({fragment for each in used for fragment in each.covered})
    known = set(covered)
    newest = max(claimed_fragments(snapshot.indices, index.name), default=-1)
    return {
        "name": index.name,
        "columns": list(index.columns),
        "segments": [
            {
                "uuid": each.uuid,
                "type": each.index_type,
                "usable": each.unused is None,
                "reason": each.unused,
            }
            for each in index.segments
        ],
        "covered": covered,
        "gaps": [
            {"fragment": each.id, "reason": _why_not(each.id, index, newest)}
            for each in snapshot.fragments
            if each.id not in known
        ],
    }


def _why_not(fragment: int, index: IndexStatistics, newest: int) -> str:
    """Tell why no segment answers for a fragment."""
    for segment in index.segments:
        if segment.unused is not None and fragment in segment.covered:
            return f"segment {segment.uuid} covers it, but is not used: {segment.unused}"
    if newest < 0:
        return "the index is not built yet"
    if fragment > newest:
        return "written after the index was built or extended"
    return "its rows were changed since the index was built"
