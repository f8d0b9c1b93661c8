"""Lance files written and read by the oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

from tests.file_reads import assert_same_pieces, picked, whole

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lance_cases import LanceCase


def write_with_pylance(case: LanceCase, path: Path) -> None:
    """Write a case; a batch makes a page of its own where the case says how long pages are."""
    cache_bytes = None if case.page_rows is None else 1
    with LanceFileWriter(
        str(path), case.table.schema, version=case.version, data_cache_bytes=cache_bytes
    ) as writer:
        for batch in case.batches_for_pylance():
            writer.write_batch(batch)


def assert_pylance_reads(path: Path, table: pa.Table) -> None:
    """Fail unless pylance's file reader gives the rows of ``table``: all, a range and some rows."""
    oracle = LanceFileReader(str(path))
    assert oracle.num_rows() == table.num_rows
    assert_same_pieces(oracle.read_all(batch_size=4096).to_table(), table)
    if table.num_rows == 0:
        return
    rng = np.random.default_rng(table.num_rows)
    start, stop = np.sort(rng.integers(0, table.num_rows + 1, 2)).tolist()
    if start < stop:
        found = oracle.read_range(start, stop - start).to_table()
        assert_same_pieces(found, table.slice(start, stop - start))
    rows = np.unique(rng.integers(0, table.num_rows, 20))
    taken = pa.table([picked(whole(column), rows) for column in table.columns], schema=table.schema)
    assert_same_pieces(oracle.take_rows(rows.tolist()).to_table(), taken)
