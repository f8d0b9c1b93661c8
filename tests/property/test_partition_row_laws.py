"""Rows come back by partition and row id, whatever fits into memory."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, strategies as st

from lance_core.index.vector.build.budget import Budget
from lance_core.index.vector.build.encode import CodedColumn
from lance_core.index.vector.build.partition_rows import PartitionRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = (
    CodedColumn("codes", np.dtype(np.uint8), 3),
    CodedColumn("factors", np.dtype(np.float32), None),
    CodedColumn("vectors", np.dtype(np.float16), 2),
)


@given(
    seed=st.integers(0, 1 << 32),
    num_rows=st.integers(0, 400),
    num_partitions=st.integers(1, 20),
    memory_bytes=st.sampled_from([1, 500, 2_000, 1 << 20]),
    piece=st.integers(1, 150),
    is_sorted=st.booleans(),
    graph_row_bytes=st.sampled_from([0, 1, 1 << 30]),
)
def test_rows_come_back_by_partition_and_row_id(
    seed: int,
    num_rows: int,
    num_partitions: int,
    memory_bytes: int,
    piece: int,
    is_sorted: bool,
    graph_row_bytes: int,
) -> None:
    generator = np.random.default_rng(seed)
    row_ids = generator.integers(0, 300, num_rows).astype(np.uint64)
    row_ids = np.sort(row_ids) if is_sorted else row_ids
    partitions = generator.integers(0, num_partitions, num_rows).astype(np.uint32)
    partitions[partitions == num_partitions // 2] = 0
    columns: dict[str, NDArray[np.generic]] = {
        "codes": generator.integers(0, 256, (num_rows, 3)).astype(np.uint8),
        "factors": generator.random(num_rows).astype(np.float32),
        "vectors": generator.random((num_rows, 2)).astype(np.float16),
    }
    with ExitStack() as stack:
        rows = PartitionRows(COLUMNS, num_partitions, Budget(memory_bytes), stack)
        for start in range(0, num_rows, piece):
            part = slice(start, start + piece)
            own = {name: values[part] for name, values in columns.items()}
            rows.add(row_ids[part], partitions[part], own)
        groups = list(rows.groups(graph_row_bytes))
    order = np.lexsort((row_ids, partitions))  # rows of one id stay in their order
    lengths = np.concatenate([each.lengths for each in groups])
    np.testing.assert_array_equal(lengths, np.bincount(partitions, minlength=num_partitions))
    found = np.concatenate([each.row_ids for each in groups])
    np.testing.assert_array_equal(found, row_ids[order])
    for name, values in columns.items():
        joined = np.concatenate([each.columns[name] for each in groups])
        assert joined.dtype == values.dtype
        np.testing.assert_array_equal(joined, values[order])
    assert all(len(each.row_ids) == each.lengths.sum() for each in groups)
