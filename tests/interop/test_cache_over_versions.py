"""Memory over many versions: within the budget, and rid of what only old ones needed."""

from __future__ import annotations

import gc
import shutil
from typing import TYPE_CHECKING, Any
from weakref import ref

import lance
import pytest

from lance_core.dataset import open_dataset
from lance_core.index.vector.blocks import load_blocks
from lance_core.index.vector.segment import VectorSegment
from lance_core.query.segments import BoundSearch
from lance_core.query.session import Session
from tests.filtered_tables import NUM_ROWS, draw, rows, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.index.ordinals import RowSpace

pytestmark = pytest.mark.interop

NUM_COMMITS = 12


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Remember every block that is loaded, by the uuid of its segment, without keeping it."""
    seen: list[Any] = []

    def note(segment: VectorSegment, space: RowSpace, *rest: Any) -> Any:
        blocks = load_blocks(segment, space, *rest)
        seen.extend((segment.uuid, ref(block)) for block in blocks)
        return blocks

    monkeypatch.setattr("lance_core.index.vector.bound.load_blocks", note)
    return seen


def commit(folder: Path, number: int) -> None:
    """Change rows, now and then the index, now and then where the rows lie."""
    dataset = lance.dataset(str(folder))
    first = NUM_ROWS + 300 * number
    dataset.insert(rows(first, first + 300))
    dataset.delete(f"id % 97 = {number}")
    if number % 2:
        dataset.optimize.optimize_indices(num_indices_to_merge=10)
    if number % 4 == 2:
        dataset.optimize.compact_files(target_rows_per_fragment=100_000, defer_index_remap=True)


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_FLAT"])
def test_blocks_of_old_versions_leave_and_memory_stays_within_the_budget(
    tmp_path: Path, loaded: list[Any], kind: str
) -> None:
    folder = tmp_path / "a.lance"
    write_table(folder, "fresh", kind, "l2")
    ample = Session()
    open_dataset(folder, session=ample).prewarm("vec_idx")
    session = Session(3 * ample.cache_stats.used_bytes)
    del ample
    loaded.clear()
    segments = []
    for number in range(NUM_COMMITS):
        commit(folder, number)
        dataset = open_dataset(folder, session=session)
        segments.append({index.uuid for index in dataset.snapshot.indices})
        for query in draw(number, 3):
            found = dataset.search(query, k=10, nprobes=100, filter="share < 700")
            assert found.num_rows == 10
            stats = session.cache_stats
            assert stats.used_bytes <= stats.budget_bytes
        del dataset
    gc.collect()
    alive = [(uuid, block()) for uuid, block in loaded if block() is not None]
    assert sum(block.nbytes for _, block in alive) <= session.cache_stats.used_bytes
    assert session.cache_stats.evictions > 0
    # Nothing is left of what none of the last versions has asked for.
    assert {uuid for uuid, _ in alive} <= set().union(*segments[-6:])


def test_an_old_version_that_is_asked_for_again_answers_as_before(tmp_path: Path) -> None:
    folder = tmp_path / "a.lance"
    write_table(folder, "fresh", "IVF_PQ", "l2")
    session = Session(150_000)
    old = open_dataset(folder, session=session)
    query = draw(3, 1)[0]
    before = old.search(query, k=10, nprobes=100)
    for number in range(6):
        commit(folder, number)
        open_dataset(folder, session=session).search(query, k=10, nprobes=100)
    assert old.search(query, k=10, nprobes=100) == before
    assert session.cache_stats.used_bytes <= 150_000


def test_versions_that_share_rows_share_blocks(tmp_path: Path, loaded: list[Any]) -> None:
    folder = tmp_path / "a.lance"
    write_table(folder, "fresh", "IVF_PQ", "l2")
    session = Session()
    first = open_dataset(folder, session=session)
    first.prewarm("vec_idx")
    num_loaded = len(loaded)
    lance.dataset(str(folder)).delete("id % 5 = 0")
    lance.dataset(str(folder)).insert(rows(NUM_ROWS, NUM_ROWS + 50))
    later = open_dataset(folder, session=session)
    assert later.version == first.version + 2
    later.search(draw(1, 1)[0], k=5, nprobes=100)
    assert len(loaded) == num_loaded


def parts_in_memory() -> list[VectorSegment | BoundSearch]:
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, VectorSegment | BoundSearch)]


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_HNSW_SQ"])
def test_datasets_that_stay_open_keep_no_index_beyond_the_budget(tmp_path: Path, kind: str) -> None:
    of_other_tests = {id(each): each for each in parts_in_memory()}
    model = tmp_path / "0.lance"
    write_table(model, "two segments", kind, "l2")
    ample = Session()
    query = draw(1, 1)[0]
    expected = open_dataset(model, session=ample).search(query, k=10, nprobes=3)
    budget = 3 * ample.cache_stats.used_bytes
    del ample
    session = Session(budget)
    opened = []
    for number in range(1, 16):
        shutil.copytree(model, tmp_path / f"{number}.lance")
        opened.append(open_dataset(tmp_path / f"{number}.lance", session=session))
        assert opened[-1].search(query, k=10, nprobes=3) == expected
    for dataset in opened:
        assert dataset.search(query, k=10, nprobes=3) == expected
    alive = [each for each in parts_in_memory() if id(each) not in of_other_tests]
    assert 0 < sum(each.nbytes for each in alive) <= session.cache_stats.used_bytes <= budget
    figures = session.cache.figures()
    assert len(figures) == len(opened)
    assert sum(each.entries > 0 for each in figures.values()) < len(opened)
