"""Results as a table beside their bars, and as JSON."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table

from benchmarks.summary import compare, summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.workers import Block

VERSIONS = ("pylance", "numpy", "numba", "pyarrow", "fastapi", "uvicorn")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one case, for both sides, with the bar that it should meet, if there is one.

    ``direction`` says on which side of ``bar`` the ratio should lie.
    """

    case: str
    figure: str
    ours: float
    peer: float
    ratio: float
    bar: float | None = None
    direction: Literal["at most", "at least"] = "at most"

    @property
    def passes(self) -> bool | None:
        """Return whether the bar is met, None without a bar."""
        if self.bar is None:
            return None
        return self.ratio <= self.bar if self.direction == "at most" else self.ratio >= self.bar


def timing_rows(
    case: str,
    ours: Sequence[Block],
    peer: Sequence[Block],
    *,
    p50_bar: float | None = None,
    cpu_bar: float | None = None,
) -> list[Row]:
    """Return the percentiles and the CPU time of interleaved blocks as rows."""
    a, b, ratios = summarise(ours), summarise(peer), compare(ours, peer)
    return [
        Row(case, "p10", a.p10_ms, b.p10_ms, a.p10_ms / b.p10_ms),
        Row(case, "p50", a.p50_ms, b.p50_ms, ratios.p50, p50_bar),
        Row(case, "p95", a.p95_ms, b.p95_ms, a.p95_ms / b.p95_ms),
        Row(case, "CPU per query", a.cpu_ms, b.cpu_ms, ratios.cpu, cpu_bar),
    ]


def throughput_row(
    case: str, ours: Sequence[Block], peer: Sequence[Block], bar: float | None
) -> Row:
    """Return queries per second of interleaved blocks as a row."""
    a, b = summarise(ours).queries_per_s, summarise(peer).queries_per_s
    return Row(case, "queries per s", a, b, compare(ours, peer).throughput, bar, "at least")


def print_table(rows: list[Row], title: str) -> None:
    """Print all rows; those of one case stand together."""
    table = Table(title=title)
    for name in ("case", "figure", "ours", "pylance", "ratio", "bar", ""):
        table.add_column(name, justify="left" if name in {"case", "figure"} else "right")
    previous = ""
    for row in rows:
        if row.case != previous:
            table.add_section()
        table.add_row(row.case if row.case != previous else "", *_cells(row))
        previous = row.case
    Console(width=130).print(table)


def _cells(row: Row) -> list[str]:
    bar = "" if row.bar is None else f"{row.direction} {row.bar:g}"
    verdict = {None: "", True: "pass", False: "FAIL"}[row.passes]
    return [row.figure, _number(row.ours), _number(row.peer), f"{row.ratio:.3f}", bar, verdict]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"


def describe_machine() -> dict[str, object]:
    """Return what a reader needs to judge the figures."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": _commit(),
        "versions": {name: importlib.metadata.version(name) for name in VERSIONS},
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip()
