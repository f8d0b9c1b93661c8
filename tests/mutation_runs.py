"""Thousands of damaged files, each of which must give data or an error of the library.

``python -m tests.mutation_runs --count 20000`` runs them; ``--start 4711 --count 1`` repeats one
and ``--keep FOLDER`` stores what it was about. Needs pylance, which writes the files.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutation_corpus import write_corpus
from tests.mutation_worker import damaged_file

_WORKER = "tests.mutation_worker"
_MAX_FAILURES = 50


def run_seeds(
    folder: Path, start: int, stop: int, worker: str = "tests.mutation_worker"
) -> list[str]:
    """Read the damaged files of some seeds in processes of their own.

    Parameters
    ----------
    folder
        The valid files, as `write_corpus` writes them.
    start, stop
        The seeds.
    worker
        Module that reads; prints ``begin SEED`` before each file, ``wrong SEED ...`` after it.

    Returns
    -------
    list[str]
        What went wrong, one text for each seed that something did go wrong with.
    """
    failures: list[str] = []
    while start < stop and len(failures) < _MAX_FAILURES:
        command = [sys.executable, "-m", worker, str(folder), str(start), str(stop)]
        environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
        done = subprocess.run(  # noqa: S603 - our own module
            command, capture_output=True, text=True, env=environment, errors="replace", check=False
        )
        lines = done.stdout.splitlines()
        failures += [line for line in lines if line.startswith("wrong ")]
        if done.returncode == 0:
            break
        begun = [int(line.split()[1]) for line in lines if line.startswith("begin ")]
        last = begun[-1] if len(begun) > 0 else start
        failures.append(f"died {last}: exit {done.returncode}\n{done.stderr[-3000:]}")
        start = last + 1
    return failures


def main() -> None:
    """Run seeds in as many processes as there are processors; exit with 1 if any went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="store the damaged files of all seeds here")
    options = parser.parse_args()
    stop = options.start + options.count
    with TemporaryDirectory() as place, ThreadPoolExecutor(options.processes) as pool:
        folder = Path(place)
        write_corpus(folder)
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            for seed in range(options.start, stop):
                data, kind = damaged_file(sorted(folder.iterdir()), seed)
                name = f"{seed} {kind}".replace("/", " ")
                (options.keep / name).write_bytes(data)
        starts = range(options.start, stop, -(-options.count // (4 * options.processes)))
        ends = [*starts[1:], stop]
        parts = pool.map(lambda start, end: run_seeds(folder, start, end), starts, ends)
        failures = [failure for part in parts for failure in part]
    print("\n".join(failures))  # noqa: T201
    print(f"{options.count} damaged files, {len(failures)} of them wrong")  # noqa: T201
    sys.exit(1 if len(failures) > 0 else 0)


if __name__ == "__main__":
    main()
