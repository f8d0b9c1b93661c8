"""Writers of one dataset in processes of their own, ours and pylance's, and what they committed.

Rows are numbers that nobody appends twice, so that the rows that must be there at the end follow
from what the writers say, in whatever order they did it.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import lance
import numpy as np
import pyarrow as pa

from lance_core.dataset import open_dataset
from lance_core.errors import CommitConflictError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.synchronize import Barrier
    from typing import TypeAlias

    Writer: TypeAlias = "_Ours | _Pylance"

_ROWS = 20
_CHECK = 7
_SMALL = 500
"""Rows of a fragment that compactions aim at: there is always something to compact."""

_CONFLICTS = ("conflict", "concurrent", "Attempted")
"""Words of pylance's errors when a commit was given up."""

_start_line: list[Barrier] = []


@dataclass(slots=True)
class Done:
    """What one writer knows to be committed, and how often it had to give up."""

    name: str
    commits: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    appended: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Task:
    """Who writes what, where, for how long."""

    name: str
    number: int
    uri: str
    seconds: float
    storage_options: dict[str, str] | None = None


def rows(start: int, count: int = _ROWS) -> pa.Table:
    """Return rows of consecutive ids; those of a million are one writer's own."""
    ids = np.arange(start, start + count)
    return pa.table({"id": ids, "check": ids * _CHECK})


def rows_of(table: pa.Table) -> list[int]:
    """Return the ids of a table, ordered, whose rows must be whole."""
    ids = table["id"].to_numpy()
    assert np.array_equal(table["check"].to_numpy(), ids * _CHECK)
    return sorted(ids.tolist())


def expected(first: pa.Table, done: Sequence[Done]) -> list[int]:
    """Return the ids that must be there."""
    left = set(first["id"].to_pylist()).union(*(each.appended for each in done))
    return sorted(left.difference(*(each.deleted for each in done)))


def raced(tasks: Sequence[Task]) -> list[Done]:
    """Let writers race; return what each says it has done."""
    context = multiprocessing.get_context("spawn")
    line = context.Barrier(len(tasks))
    with ProcessPoolExecutor(
        len(tasks), mp_context=context, initializer=_take_place, initargs=(line,)
    ) as pool:
        return list(pool.map(_race, tasks))


def _take_place(line: Barrier) -> None:
    _start_line.append(line)


def _race(task: Task) -> Done:
    kinds: dict[str, type[Writer]] = {"ours": _Ours, "pylance": _Pylance}
    writer = kinds[task.name](task.uri, task.storage_options)
    rng = np.random.default_rng(task.number)
    done, start = Done(task.name), (task.number + 1) * 1_000_000
    _start_line[0].wait(timeout=120)
    end = time.monotonic() + task.seconds
    # However short the race and slow the machine, every writer takes part in it.
    while time.monotonic() < end or done.commits["append"] + done.commits["delete"] == 0:
        chance = rng.random()
        if chance < 0.4:
            _append(writer, start, done)
            start += _ROWS
        elif chance < 0.85:
            _delete(writer, rng, done)
        else:
            which = int(rng.integers(len(writer.compactions)))
            _tried(partial(writer.compact, which), writer.compactions[which], done)
    return done


def _append(writer: Writer, start: int, done: Done) -> None:
    table = rows(start)
    while not _tried(partial(writer.append, table), "append", done):
        pass
    done.appended.update(table["id"].to_pylist())


def _delete(writer: Writer, rng: np.random.Generator, done: Done) -> None:
    """Delete some rows, whoever appended them, and whoever deletes them at the same time."""
    present = writer.ids()
    if len(present) == 0:
        return
    chosen = rng.choice(present, min(3, len(present)), replace=False).tolist()
    while not _tried(partial(writer.delete, chosen), "delete", done):
        pass
    done.deleted.update(chosen)


def _tried(work: partial[None], kind: str, done: Done) -> bool:
    """Do something; return False if it was given up because others were faster."""
    try:
        work()
    except CommitConflictError as error:
        if not error.is_retryable:
            raise
        done.conflicts[kind] += 1
        return False
    except UnsupportedFeatureError:
        done.refused[kind] += 1
        return True
    except OSError as error:
        if not any(word in str(error) for word in _CONFLICTS):
            raise
        done.conflicts[kind] += 1
        return False
    done.commits[kind] += 1
    return True


def _any_of(ids: Sequence[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


class _Ours:
    compactions: ClassVar[tuple[Literal["defer", "drop_coverage", "remap"], ...]] = (
        "defer",
        "drop_coverage",
        "remap",
    )

    def __init__(self, uri: str, storage_options: dict[str, str] | None) -> None:
        self._open = partial(open_dataset, uri, storage_options=storage_options)

    def append(self, table: pa.Table) -> None:
        self._open().append(table)

    def ids(self) -> list[int]:
        return rows_of(self._open().scan().read_all())

    def delete(self, ids: Sequence[int]) -> None:
        self._open().delete(_any_of(ids))

    def compact(self, which: int) -> None:
        way = self.compactions[which]
        self._open().compact(indices=way, target_rows_per_fragment=_SMALL)


class _Pylance:
    compactions: ClassVar[tuple[str, ...]] = ("eager", "deferred")

    def __init__(self, uri: str, storage_options: dict[str, str] | None) -> None:
        self._uri, self._options = uri, storage_options

    def append(self, table: pa.Table) -> None:
        lance.write_dataset(table, self._uri, mode="append", storage_options=self._options)

    def ids(self) -> list[int]:
        return rows_of(self._opened().to_table())

    def delete(self, ids: Sequence[int]) -> None:
        self._opened().delete(_any_of(ids))

    def compact(self, which: int) -> None:
        self._opened().optimize.compact_files(
            target_rows_per_fragment=_SMALL, defer_index_remap=self.compactions[which] == "deferred"
        )

    def _opened(self) -> lance.LanceDataset:
        return lance.dataset(self._uri, storage_options=self._options)
