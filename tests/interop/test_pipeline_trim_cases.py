"""The table of forced cases of the rule of trims, by jobs and to the last answer.

An index is built from one version and committed at another, around a deferred compaction; then
pylance commits, which leads stored coverage through the history. A trim must keep the compaction
exactly where files of the index still name the old rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pytest

from lance_core.dataset import open_dataset
from lance_core.io.mapped_store import MappedStore
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.compact_trim import reuse_growth
from lance_core.operations.new_index import NewIndex
from pipeline.compact import compact
from pipeline.compact_plan import CompactionWish
from pipeline.trim import trim_fri
from tests.pipeline_stages import local_context
from tests.pipeline_upkeep import Kept, made
from tests.verified import verified

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

CASES = {
    "plan version, committed between": ("plan", "between", True),
    "reservation, committed between": ("reservation", "between", True),
    "plan version, committed after": ("plan", "after", True),
    "reservation, committed after": ("reservation", "after", True),
    "an append between, committed after": ("append", "after", True),
    "the rewrite, committed after": ("rewrite", "after", False),
}


def between_reservation_and_rewrite(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]
) -> None:
    """Act before the second manifest is put, that of the rewrite, which is then put again."""
    usual, calls = MappedStore.put_if_absent, [0]

    def put(store: MappedStore, path: str, data: bytes) -> None:
        if path.startswith("_versions/"):
            calls[0] += 1
            if calls[0] == 2:
                act()
        usual(store, path, data)

    monkeypatch.setattr(MappedStore, "put_if_absent", put)


@pytest.mark.parametrize("case", CASES)
def test_a_trim_keeps_what_files_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    built_from, committed, is_kept = CASES[case]
    kept = made(tmp_path, 400)
    kept.index("BITMAP")  # what is compacted is in an index in all cases
    kept.delete(range(0, 400, 7))
    plan_version = kept.dataset.version
    segments = []

    def build(version: int | None) -> None:
        index = NewIndex("of_btree", "key", "BTREE")
        segments.append(open_dataset(tmp_path, version).build_segment(index))

    def commit() -> None:
        kept.dataset.commit_segments("of_btree", segments)

    def act() -> None:
        if built_from == "append":
            kept.append(range(400, 420))
        if built_from != "rewrite":
            build({"plan": plan_version, "reservation": plan_version + 1}.get(built_from))
        if committed == "between":
            commit()

    between_reservation_and_rewrite(monkeypatch, act)
    compact(local_context(tmp_path), CompactionWish(CompactionOptions(1000, 0.0)))
    if built_from == "rewrite":
        build(None)
    if committed == "after":
        commit()
    lance.dataset(str(tmp_path)).update_config({"a": "b"})
    check(kept)
    # the index on the colours is followed first, so that only the other one needs the compaction
    kept.dataset.remap_indices(["of_bitmap"])
    report = trim_fri(local_context(tmp_path), remap=False, max_versions=0)
    assert report.num_after == int(is_kept)
    check(kept)
    assert trim_fri(local_context(tmp_path), max_versions=0).num_after == 0
    assert reuse_growth(kept.dataset.snapshot).num_versions == 0
    check(kept)
    assert verified(tmp_path) == []


def check(kept: Kept) -> None:
    """Check every key, live or not, by both libraries."""
    kept.check("BTREE", "BITMAP")
    keys = [each * 3 for each in range(0, 420, 2)]
    condition = f"key IN ({', '.join(map(str, keys))})"
    expected = [each for each in kept.ids if each * 3 in set(keys)]
    for table in (
        lance.dataset(str(kept.root)).to_table(columns=["id"], filter=condition),
        kept.dataset.scan(["id"], filter=condition).read_all(),
    ):
        assert sorted(table["id"].to_pylist()) == expected
