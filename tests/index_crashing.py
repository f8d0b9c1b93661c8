"""Work on indices that dies before a step of its choice: a file is made, named or removed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.dataset import Dataset, open_dataset, write_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NUM_ROWS, DIMENSION = 120, 8
_STEPS = frozenset(("os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir"))
_MOST_STEPS = 250  # fewer than exit codes
_WRITES = os.O_WRONLY | os.O_RDWR

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.index_crashing"])


def rows_from(start: int) -> pa.Table:
    """Return rows whose ids follow one another."""
    ids = np.arange(start, start + NUM_ROWS)
    numbers = np.random.default_rng(start).random(NUM_ROWS * DIMENSION, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers), DIMENSION)
    return pa.table({"id": ids, "text": [f"text {each % 7}" for each in ids], "vector": vectors})


def _begin(root: Path) -> Dataset:
    """Two indexed fragments, and one that no index covers."""
    dataset = write_dataset(root, rows_from(0)).append(rows_from(NUM_ROWS))
    dataset = dataset.create_index("id", "BTREE")
    dataset = dataset.create_index("vector", "IVF_SQ", num_partitions=2)
    return dataset.append(rows_from(2 * NUM_ROWS))


def _begin_deferred(root: Path) -> Dataset:
    return _begin(root).delete("id % 10 = 3").compact(indices="defer")


def _create(dataset: Dataset) -> None:
    dataset.create_index("text", "BITMAP")


def _create_vectors(dataset: Dataset) -> None:
    dataset.create_index("vector", "IVF_PQ", num_partitions=2, num_sub_vectors=2, num_bits=4)


def _optimize(dataset: Dataset) -> None:
    dataset.optimize_indices()


def _remap(dataset: Dataset) -> None:
    dataset.remap_indices()


def _compact(dataset: Dataset) -> None:
    dataset.compact(indices="remap")


def _drop(dataset: Dataset) -> None:
    dataset.drop_index("vector_idx")


WORKS: dict[str, tuple[Callable[[Path], Dataset], Callable[[Dataset], None]]] = {
    "create": (_begin, _create),
    "replace": (_begin, _create_vectors),
    "optimize": (_begin, _optimize),
    "remap": (_begin_deferred, _remap),
    "compact": (_begin, _compact),
    "drop": (_begin, _drop),
}
"""What is there before, and what is done."""


def kill_at(root: Path, work: str, step: int) -> None:
    """Let a process do some work on a dataset, and die before a step."""
    assert _exit_code(root, work, step) == -signal.SIGKILL


def count_steps(root: Path, work: str) -> int:
    """Let a process do some work on a dataset; return how many steps that was."""
    number = _exit_code(root, work, _MOST_STEPS)
    assert 0 < number < _MOST_STEPS
    return number


def _exit_code(root: Path, work: str, step: int) -> int:
    process = _context.Process(target=_do, args=(str(root), work, step))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _do(root: str, work: str, step: int) -> None:
    dataset, left = open_dataset(root), step

    def on_event(event: str, details: tuple[object, ...]) -> None:
        nonlocal left
        if not _is_step(event, details) or not str(details[0]).startswith(root):
            return
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    sys.addaudithook(on_event)
    WORKS[work][1](dataset)
    os._exit(step - left)  # at once: what else happens at the end of a process is no step


def _is_step(event: str, details: tuple[object, ...]) -> bool:
    if event != "open":
        return event in _STEPS
    flags = details[2]
    return isinstance(flags, int) and flags & _WRITES != 0
