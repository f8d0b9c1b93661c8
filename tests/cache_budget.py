"""A process that queries an index ten times its cache budget at random, and watches its memory.

``python -m tests.cache_budget FOLDER SECONDS`` runs it on what `write_budget_case` left in the
folder; it does not load pylance, which wrote the index and the answers.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lance_core.dataset import Dataset
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot
from service.start_up import share_heaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_PROBES = 20
K = 10
_THREADS = 4


def main(folder: Path, seconds: float) -> dict[str, int]:
    """Query from several threads and return counts and the largest sizes in bytes."""
    share_heaps()
    root = folder / "t.lance"
    index_bytes = sum(path.stat().st_size for path in root.glob("_indices/*/*.idx"))
    session = Session(cache_bytes=index_bytes // 10)
    store = CountingStore(open_store(str(root)))  # maps nothing, as a remote store
    dataset = Dataset(session, open_snapshot(session.scheduler_for(store)))
    asked = np.load(folder / "queries.npy")
    expected = np.load(folder / "ids.npy")
    watch = _Watch(session, store)
    with ThreadPoolExecutor(_THREADS) as pool:
        until = time.monotonic() + seconds
        runs = [
            pool.submit(_query, dataset, asked, expected, until, seed) for seed in range(_THREADS)
        ]
        while not all(run.done() for run in runs):
            watch.look()
            time.sleep(0.02)
        answers = [run.result() for run in runs]
    return {
        "budget": index_bytes // 10,
        "queries": sum(count for count, _ in answers),
        "wrong": sum(wrong for _, wrong in answers),
        "evictions": session.cache_stats.evictions,
        "largest_cache": watch.largest_cache,
        "largest_process": watch.largest_process,
    }


class _Watch:
    """The largest sizes seen."""

    def __init__(self, session: Session, store: CountingStore) -> None:
        self._session = session
        self._store = store
        self.largest_cache = 0
        self.largest_process = 0

    def look(self) -> None:
        self.largest_cache = max(self.largest_cache, self._session.cache_stats.used_bytes)
        self.largest_process = max(self.largest_process, resident_bytes())
        self._store.reset()  # it would remember every read


def resident_bytes() -> int:
    """Return the resident memory of this process, without pages of files that it has mapped.

    Under the counting store lies the mapped file, whose pages a remote store would not have.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("RssAnon:")]
    return int(line.split()[1]) << 10


def _query(
    dataset: Dataset,
    asked: NDArray[np.float32],
    expected: NDArray[np.int64],
    until: float,
    seed: int,
) -> tuple[int, int]:
    generator = np.random.default_rng(seed)
    count = wrong = 0
    while time.monotonic() < until:
        number = int(generator.integers(len(asked)))
        found = dataset.search(asked[number], K, nprobes=NUM_PROBES, columns=["id"])
        wrong += int(found["id"].to_pylist() != expected[number].tolist())
        count += 1
    return count, wrong


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), float(sys.argv[2]))))
