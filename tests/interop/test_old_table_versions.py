"""Datasets of older Lance releases read as their writers read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from lance_core.scan.rows import count_rows
from tests.opened_table import open_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

pytestmark = pytest.mark.interop

RELEASES = ["0.20.0", "1.0.4", "10.0.0"]
NAMES = ["plain", "evolve"]


def truth_of(root: Path) -> pa.Table:
    return pq.read_table(root.with_suffix(".truth.parquet"))


def assert_same(ours: pa.Table, truth: pa.Table) -> None:
    """Compare through text, because Arrow calls two NaN different."""
    assert str(ours.to_pydict()) == str(truth.to_pydict())
    assert ours.schema.types == truth.schema.types


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", NAMES)
def test_a_scan_gives_the_rows_that_the_writer_saw(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    truth = truth_of(root).sort_by("_rowid")
    ours = open_table(root).scan(truth.column_names).sort_by("_rowid")
    assert_same(ours, truth)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", NAMES)
def test_taken_rows_are_those_that_the_writer_saw(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    truth = truth_of(root)[::37]
    addresses = truth["_rowid"].combine_chunks().to_numpy()
    ours = open_table(root).take(addresses, truth.column_names)
    assert_same(ours, truth)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["plain", "evolve", "ivf_pq_l2", "ivf_pq_cosine", "ivf_pq_dot"])
def test_versions_and_counts_are_as_recorded(
    old_dataset: Callable[[str, str], Path], release: str, name: str
) -> None:
    root = old_dataset(release, name)
    recorded = json.loads(root.with_suffix(".json").read_text())
    ours = open_table(root)
    assert ours.snapshot.version == recorded["version"]
    assert count_rows(ours.files, ours.snapshot) == recorded["rows"]


@pytest.mark.parametrize("release", RELEASES)
def test_vector_index_entries_cover_the_rows_that_were_indexed(
    old_dataset: Callable[[str, str], Path], release: str
) -> None:
    snapshot = open_table(old_dataset(release, "ivf_pq_l2")).snapshot
    (index,) = snapshot.indices
    vector = snapshot.schema.field("vec")
    assert index.type_name == "VectorIndexDetails"
    assert index.field_ids == (vector.id,)
    assert index.fragment_bitmap is not None
    covered = [each for each in snapshot.fragments if each.id in index.fragment_bitmap]
    assert sum(fragment.physical_rows for fragment in covered) == 600
