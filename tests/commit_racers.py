"""Writers of one dataset in processes of their own, each with rows of its own to delete."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa

from lance_core.dataset import Dataset, open_dataset
from lance_core.errors import CommitConflictError
from tests.committed import append, delete

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

_ROWS = 20
_CONFLICTS = ("conflict", "concurrent", "Attempted")
"""Words of pylance's errors when a commit was given up."""


@dataclass(slots=True)
class Done:
    """What one writer knows to be committed."""

    name: str
    commits: int = 0
    conflicts: int = 0
    appended: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)


def ids_table(start: int) -> pa.Table:
    """Return rows that no other writer appends."""
    return pa.table({"id": pa.array(range(start, start + _ROWS), pa.int64())})


def race(
    name: str, root: str, number: int, seconds: float, start_line: Barrier, answers: Queue[Done]
) -> None:
    """Append, delete and compact for a while, then say what was committed."""
    writer: _Ours | _Pylance = _Ours(root) if name == "ours" else _Pylance(root)
    rng = np.random.default_rng(number)
    done, start = Done(name), (number + 1) * 1_000_000
    start_line.wait()
    end = time.monotonic() + seconds
    mine: list[int] = []
    while time.monotonic() < end:
        if rng.random() < 0.4 or len(mine) < _ROWS:
            writer.append(ids_table(start))
            mine += range(start, start + _ROWS)
            done.appended += range(start, start + _ROWS)
            start += _ROWS
        elif isinstance(writer, _Pylance) and rng.random() < 0.1:
            done.conflicts += not _tried(writer.compact)
        else:
            chosen = [int(each) for each in rng.choice(mine, 3, replace=False)]
            while not _tried(partial(writer.delete, chosen)):
                done.conflicts += 1
            mine = [each for each in mine if each not in chosen]
            done.deleted += chosen
        done.commits += 1
    answers.put(done)


def _tried(work: Callable[[], object]) -> bool:
    """Do something; return False if it was given up because of a conflict."""
    try:
        work()
    except CommitConflictError as error:
        if not error.is_retryable:
            raise
        return False
    except OSError as error:
        if not any(word in str(error) for word in _CONFLICTS):
            raise
        return False
    return True


class _Ours:
    def __init__(self, root: str) -> None:
        self._root = root

    def append(self, table: pa.Table) -> None:
        append(open_dataset(self._root).snapshot, table)

    def delete(self, ids: list[int]) -> None:
        dataset = open_dataset(self._root)
        delete(dataset.snapshot, _offsets(dataset, ids))


def _offsets(dataset: Dataset, ids: list[int]) -> dict[int, list[int]]:
    rows = dataset.scan(["id"], with_row_id=True).read_all()
    wanted = np.isin(rows["id"].to_numpy(), ids)
    offsets: dict[int, list[int]] = {}
    for address in rows["_rowid"].to_numpy()[wanted].tolist():
        offsets.setdefault(address >> 32, []).append(address & 0xFFFF_FFFF)
    assert sum(map(len, offsets.values())) == len(ids)
    return offsets


class _Pylance:
    def __init__(self, root: str) -> None:
        self._root = root

    def append(self, table: pa.Table) -> None:
        lance.write_dataset(table, self._root, mode="append")

    def delete(self, ids: list[int]) -> None:
        lance.dataset(self._root).delete(f"id in ({', '.join(map(str, ids))})")

    def compact(self) -> None:
        lance.dataset(self._root).optimize.compact_files(target_rows_per_fragment=500)
