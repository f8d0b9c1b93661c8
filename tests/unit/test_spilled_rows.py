"""Rows that find no room on disk end a build with an error that says what to do."""

from __future__ import annotations

import resource
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import StoreUnavailableError
from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.index.scalar.writers.sort import sort_rows
from lance_core.index.vector.build.budget import Budget
from lance_core.index.vector.build.partition_rows import PartitionRows
from lance_core.io.spill import spill_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NUM_ROWS = 20_000
ROW_IDS = np.arange(NUM_ROWS, dtype=np.uint64)


def sort(values: pa.Array) -> None:
    pieces = (IndexedRows(values.slice(s, 500), ROW_IDS[s : s + 500]) for s in (0, 500, 1000))
    for _ in sort_rows(pieces, 1):
        pass


def partition() -> None:
    with ExitStack() as stack:
        rows = PartitionRows((), 3, Budget(1), stack)
        rows.add(ROW_IDS[:1000], np.zeros(1000, np.uint32), {})
        for _ in rows.groups():
            pass


SPILLS = {
    "nulls": lambda: sort(pa.nulls(NUM_ROWS, pa.int64())),
    "sorted runs": lambda: sort(pa.array(ROW_IDS)),
    "partitions": partition,
}


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond some bytes: the system refuses as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("spill", SPILLS.values(), ids=SPILLS.keys())
def test_a_missing_temporary_folder_is_named(
    spill: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "missing")
    monkeypatch.setattr(tempfile, "tempdir", missing)
    with pytest.raises(StoreUnavailableError, match=rf"{missing}: No such file.*set TMPDIR"):
        spill()


def test_a_system_without_any_temporary_folder_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", refuse)
    with pytest.raises(StoreUnavailableError, match=r"a temporary folder: No usable.*set TMPDIR"):
        partition()


@pytest.mark.parametrize("spill", SPILLS.values(), ids=SPILLS.keys())
def test_a_full_disk_is_named_and_nothing_is_left_on_it(
    spill: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with full_disk(), pytest.raises(StoreUnavailableError, match=f"kept in {tmp_path}:"):
        spill()
    assert list(tmp_path.iterdir()) == []


def test_errors_of_who_gives_rows_are_passed_on_as_they_are() -> None:
    def pieces() -> Iterator[IndexedRows]:
        yield IndexedRows(pa.array(ROW_IDS), ROW_IDS)
        raise FileNotFoundError("theirs")

    with pytest.raises(FileNotFoundError, match="theirs"):
        list(sort_rows(pieces(), 1))
    with pytest.raises(FileNotFoundError, match="theirs"), spill_file():
        raise FileNotFoundError("theirs")
