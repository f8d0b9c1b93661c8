"""A writer that says what it is going to do before it does it, to be killed at any moment.

Its log has one JSON list per line: ``["begin", action, argument]`` before each action and
``["done"]`` after it. An action without the second line may have been committed or not.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.dataset import Dataset, open_dataset

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

ACTIONS = ("append", "delete", "update", "compact", "cleanup")
_ROWS = 20
_BEGUN_WITHIN_S = 60.0

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.crashing"])


@dataclass(slots=True)
class Model:
    """Rows by id, as far as the log tells; the action that was under way when the writer died."""

    rows: dict[int, int] = field(default_factory=dict)
    pending: tuple[str, int] | None = None

    def follow(self, log: Path) -> None:
        """Do what a log says was done; what it only says was begun stays pending."""
        for line in log.read_text().splitlines():
            word, *action = json.loads(line)
            if word == "begin":
                self.pending = (action[0], action[1])
            else:
                self.rows, self.pending = self.after(), None

    def after(self) -> dict[int, int]:
        """Return the rows that there are once the pending action is done."""
        match self.pending:
            case ("append", start):
                return self.rows | dict.fromkeys(range(start, start + _ROWS), 0)
            case ("delete", rest):
                return {row: n for row, n in self.rows.items() if row % 10 != rest}
            case ("update", rest):
                return {row: rest if row % 10 == rest else n for row, n in self.rows.items()}
        return self.rows

    def settle(self, found: dict[int, int]) -> None:
        """Compare with rows that were found: those before or after the pending action."""
        if found != self.rows:
            assert found == self.after(), self.pending
        self.rows, self.pending = found, None


def killed(root: Path, log: Path, seed: int, aim: str, delay_s: float) -> None:
    """Let a writer work on a dataset, and kill it some time after it began a certain action."""
    log.write_text("")
    process = _context.Process(target=_work, args=(str(root), str(log), seed))
    process.start()
    give_up = time.monotonic() + _BEGUN_WITHIN_S
    while not log.read_text().rpartition('["begin"')[2].startswith(f', "{aim}"'):
        assert process.is_alive(), process.exitcode
        assert time.monotonic() < give_up
        time.sleep(0.0002)
    time.sleep(delay_s)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL  # it did not fail before


def _work(root: str, log: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with open(log, "a", buffering=1, encoding="ascii") as lines:  # noqa: PTH123 - line by line
        for number in range(1_000_000):
            action = str(rng.choice(ACTIONS))
            argument = seed * 1_000_000 + number * _ROWS
            if action != "append":
                argument = int(rng.integers(10))
            _say(lines, "begin", action, argument)
            _do(open_dataset(root), action, argument)
            _say(lines, "done")


def _say(lines: TextIO, *words: object) -> None:
    lines.write(json.dumps(words) + "\n")


def _do(dataset: Dataset, action: str, argument: int) -> None:
    match action:
        case "append":
            dataset.append(rows_from(argument))
        case "delete":
            dataset.delete(_with_rest(dataset, argument))
        case "update":
            dataset.update({"n": argument}, where=_with_rest(dataset, argument))
        case "compact":
            is_deferred = argument % 2 == 0 and not dataset.snapshot.has_stable_row_ids
            dataset.compact(
                indices="defer" if is_deferred else "drop_coverage",
                target_rows_per_fragment=100 + argument,
            )
        case "cleanup":
            dataset.cleanup(older_than=timedelta(0), delete_unverified=True)


def rows_from(start: int) -> pa.Table:
    """Return rows whose ids follow one another."""
    ids = np.arange(start, start + _ROWS)
    return pa.table({"id": ids, "n": np.zeros(_ROWS, np.int64)})


def rows_of(table: pa.Table) -> dict[int, int]:
    """Return the rows of a table by id; no id comes twice."""
    found = dict(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert len(found) == len(table)
    return found


def _with_rest(dataset: Dataset, rest: int) -> str:
    ids = dataset.scan(["id"]).read_all()["id"].to_numpy()
    chosen = ids[ids % 10 == rest].tolist()
    return f"id IN ({', '.join(map(str, chosen))})" if chosen else "id = -1"
