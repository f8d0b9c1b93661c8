"""An index of a kind that is not read here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

NAME = "unknown_idx"


def write_unknown_index(path: Path, table: pa.Table) -> lance.LanceDataset:
    """Write a table in fragments of 100 rows, and an index on the values in JSON documents."""
    documents = pa.array([f'{{"a": {row}}}' for row in range(len(table))], pa.json_())
    dataset = lance.write_dataset(
        table.append_column("documents", documents), str(path), max_rows_per_file=100
    )
    parameters = {"target_index_type": "btree", "path": "a"}
    config = lance.indices.IndexConfig("json", parameters)
    dataset.create_scalar_index("documents", config, name=NAME)
    return dataset
