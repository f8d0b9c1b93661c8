"""A dataset for clients to read: three kinds of index, newer rows, deleted rows, a branch, tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa

from tests import pylance_dataset

if TYPE_CHECKING:
    from pathlib import Path

ANIMALS = ("otter", "heron", "lynx", "newt", "wren")
BRANCH, BRANCH_ROWS = "dev", 10
INDICES = {"vec_idx": "IvfPq", "id_idx": "BTree", "text_idx": "FTS"}


def text_of(row: int) -> str:
    way = "north" if row % 2 else "south"
    return f"the {ANIMALS[row % 5]} number {row} swims {way} tonight"


def rows(first: int, last: int) -> Any:
    table = pylance_dataset.rows(first, last)
    return table.append_column("text", pa.array([text_of(row) for row in range(first, last)]))


def write_client_dataset(path: Path) -> None:
    """Write it; version 1 has all indexed rows, the newest one what ``LIVE`` says.

    Tags: ``first`` is version 1, ``other`` the newest one of the branch.
    """
    indexed, end = pylance_dataset.NUM_INDEXED, len(pylance_dataset.VECTORS)
    dataset = lance.write_dataset(rows(0, indexed), str(path), max_rows_per_file=300)
    dataset.create_index("vec", "IVF_PQ", metric="l2", num_partitions=4, num_sub_vectors=8)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("text", "INVERTED", with_position=True)
    branch = dataset.create_branch(BRANCH, 1)
    branch = lance.write_dataset(rows(0, BRANCH_ROWS), branch, mode="append")
    dataset.tags.create("first", 1)
    dataset.tags.create("other", (BRANCH, branch.version))
    lance.write_dataset(rows(indexed, end), str(path), mode="append")
    lance.dataset(str(path)).delete(f"id < {indexed} AND id % 50 = 49")
