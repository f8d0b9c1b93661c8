"""Writers of ours and of pylance that commit to one dataset at the same time."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

import lance
import pytest

from lance_core.dataset import open_dataset
from tests.commit_racers import Done, ids_table, race
from tests.committed import create

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from pathlib import Path

pytestmark = pytest.mark.interop

SECONDS = 4.0
WRITERS = ("ours", "pylance", "ours", "pylance")


def raced(root: Path, writers: tuple[str, ...], seconds: float) -> list[Done]:
    """Let writers race; return what each says it has done."""
    context = multiprocessing.get_context("spawn")
    answers: Queue[Done] = context.Queue()
    start_line = context.Barrier(len(writers))
    processes = [
        context.Process(target=race, args=(name, str(root), number, seconds, start_line, answers))
        for number, name in enumerate(writers)
    ]
    for process in processes:
        process.start()
    done = [answers.get(timeout=seconds + 60) for _ in processes]
    for process in processes:
        process.join()
    return done


@pytest.mark.slow
def test_no_row_is_lost_or_doubled_or_comes_back(tmp_path: Path) -> None:
    create(tmp_path, ids_table(0))
    done = raced(tmp_path, WRITERS, SECONDS)
    expected = {each for one in done for each in one.appended} | set(range(20))
    expected -= {each for one in done for each in one.deleted}
    dataset = lance.dataset(str(tmp_path))
    assert sorted(dataset.to_table()["id"].to_pylist()) == sorted(expected)
    ours = open_dataset(tmp_path).scan(["id"]).read_all()["id"].to_pylist()
    assert sorted(ours) == sorted(expected)
    versions = [each["version"] for each in dataset.versions()]
    assert versions == list(range(1, len(versions) + 1))
    assert all(one.commits > 3 for one in done)
