"""Compactions of ours in tests: of a path, with the treatment of indices by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.operations.compact import compact
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions
from tests.opened_table import open_table

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.table.snapshot import Snapshot


def compacted(
    root: Path, treatment: str = "defer", target_rows: int = 1 << 20, threshold: float = 0.0
) -> Snapshot:
    """Compact the newest version of a dataset."""
    table = open_table(root)
    options = CompactionOptions(target_rows, threshold)
    return compact(table.files, table.snapshot, options, IndexTreatment(treatment))
