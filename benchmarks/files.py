"""Lance files: our reader and writer against the peer's own, on the same rows and files.

Both sides scan and take from the file that the peer wrote, in the page cache, and write the same
batches from memory with their defaults. Peak memory is measured on streams of two lengths.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.file_columns import FileCase
from benchmarks.file_engines import FILE_ENGINES
from benchmarks.file_workers import start_file_worker
from benchmarks.report import Row
from benchmarks.summary import compare, interleave, summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.file_workers import FileWorker
    from benchmarks.workers import Block

CASES = (
    FileCase("int64", 4_000_000, scan_bar=1.0),
    FileCase("sorted int64", 4_000_000, scan_bar=1.0),
    FileCase("nullable double", 4_000_000, scan_bar=1.0),
    FileCase("vectors", 1_000_000, scan_bar=1.0),
    FileCase("prose", 1_000_000, scan_bar=2.0),
    FileCase("labels", 2_000_000, scan_bar=2.0),
    FileCase("list of structs", 1_000_000, scan_bar=2.5),
    FileCase("nullable double", 1_000, scan_bar=None, write_bar=None, num_columns=5_000),
)
TAKE_BARS = {"vectors": 1.0, "prose": None, "list of structs": None}
"""Cases that single rows are taken from."""
TAKE_ROWS = 1_000
TAKES_PER_BLOCK = 20
SCANS_PER_BLOCK = 2
WRITES_PER_BLOCK = 1
MEMORY_ROWS = {"vectors": 500_000, "prose": 2_000_000}
"""Files long enough that windows and the allocator's pools have grown to what they stay at."""
MEMORY_FACTOR = 4
MEMORY_BAR = 1.3
"""Peak memory of a file four times as long, divided by that of the short one."""


def measure_files(num_blocks: int) -> list[Row]:
    """Return scan, take, write and memory figures of every case."""
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ours = stack.enter_context(start_file_worker("ours"))
        peer = stack.enter_context(start_file_worker("pylance"))
        for case in CASES:
            print(f"files, {case.name}", flush=True)
            rows += _measure_case(folder, case, ours, peer, num_blocks)
    for name, num_rows in MEMORY_ROWS.items():
        print(f"files, memory, {name}", flush=True)
        rows += _measure_memory(FileCase(name, num_rows, scan_bar=1.0))
    return rows


def _measure_case(
    folder: Path, case: FileCase, ours: FileWorker, peer: FileWorker, num_blocks: int
) -> list[Row]:
    paths = {side: folder / f"{side}.lance" for side in FILE_ENGINES}
    label = f"file of {case.num_rows:,} x {case.name}"
    if case.num_columns > 1:
        label += f" x {case.num_columns:,} columns"
    parts = range(num_blocks)
    writes = interleave(
        lambda _: ours.write(paths["ours"], case, WRITES_PER_BLOCK),
        lambda _: peer.write(paths["pylance"], case, WRITES_PER_BLOCK),
        parts,
    )
    path = paths["pylance"]
    scans = interleave(
        lambda _: ours.scan(path, SCANS_PER_BLOCK),
        lambda _: peer.scan(path, SCANS_PER_BLOCK),
        parts,
    )
    rows = [
        *_rows(label, "scan", scans, case.scan_bar),
        *_rows(label, "write", writes, case.write_bar),
    ]
    sizes = [float(paths[side].stat().st_size) / 1e6 for side in ("ours", "pylance")]
    rows.append(Row(label, "size, MB", sizes[0], sizes[1], sizes[0] / sizes[1], 1.15))
    if case.name in TAKE_BARS and case.num_columns == 1:
        takes = _takes(path, case, ours, peer, parts)
        rows += _rows(label, f"take {TAKE_ROWS:,}", takes, TAKE_BARS[case.name])
    return rows


def _takes(
    path: Path, case: FileCase, ours: FileWorker, peer: FileWorker, parts: Sequence[int]
) -> tuple[list[Block], list[Block]]:
    generator = np.random.default_rng(len(parts))
    rows = [
        np.stack(
            [
                np.sort(generator.choice(case.num_rows, TAKE_ROWS, replace=False))
                for _ in range(TAKES_PER_BLOCK)
            ]
        )
        for _ in parts
    ]
    return interleave(lambda part: ours.take(path, part), lambda part: peer.take(path, part), rows)


def _rows(
    label: str, figure: str, blocks: tuple[list[Block], list[Block]], bar: float | None
) -> list[Row]:
    a, b, ratios = summarise(blocks[0]), summarise(blocks[1]), compare(*blocks)
    return [
        Row(label, f"{figure}, p50", a.p50_ms, b.p50_ms, ratios.p50, bar),
        Row(label, f"{figure}, CPU", a.cpu_ms, b.cpu_ms, ratios.cpu),
    ]


def _measure_memory(case: FileCase) -> list[Row]:
    """Measure peaks in fresh processes: what an allocator kept would hide them."""
    lengths = (case.num_rows, case.num_rows * MEMORY_FACTOR)
    peaks: dict[tuple[str, str, int], int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for side in FILE_ENGINES:
            for length in lengths:
                path = Path(folder) / f"{side}-{length}.lance"
                with start_file_worker(side) as worker:
                    peaks[side, "write", length] = worker.peak_of_write(path, case, length)
                with start_file_worker(side) as worker:
                    peaks[side, "scan", length] = worker.peak_of_scan(path)
    rows = []
    for action in ("scan", "write"):
        label = f"memory of {action}, {case.name}"
        for length in lengths:
            a, b = (peaks[side, action, length] / 1e6 for side in ("ours", "pylance"))
            rows.append(Row(label, f"peak MB, {length:,} rows", a, b, a / b))
        growths = [
            peaks[s, action, lengths[1]] / peaks[s, action, lengths[0]] for s in FILE_ENGINES
        ]
        name = f"growth, {MEMORY_FACTOR}x the rows"
        rows.append(Row(label, name, growths[0], growths[1], growths[0], MEMORY_BAR))
    return rows
