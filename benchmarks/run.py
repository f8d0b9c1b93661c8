"""Measure lance-serve against pylance: ``make bench SIZE=200k`` or ``SIZE=1m``.

Blocks of ours and of the peer alternate within one run, so that a busy machine slows both. Claims
are ratios; absolute figures move by half between runs on shared machines.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from benchmarks.builds import measure_builds
from benchmarks.cases import K
from benchmarks.cold import measure_cold
from benchmarks.datasets import SIZES, cache_root, open_set
from benchmarks.files import measure_files
from benchmarks.in_process import measure_in_process
from benchmarks.other_servers import measure_adapter, measure_chroma
from benchmarks.over_http import measure_http
from benchmarks.report import describe_machine, print_table
from benchmarks.resources import measure_resources
from benchmarks.route import measure_route
from benchmarks.scalar import measure_scalar
from benchmarks.spark import measure_spark
from benchmarks.text import measure_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.datasets import BenchmarkSet
    from benchmarks.report import Row

OF_A_SET: dict[str, Callable[[BenchmarkSet, int], list[Row]]] = {
    "process": measure_in_process,
    "http": measure_http,
    "cold": lambda bench, _: measure_cold(bench),
    "resources": lambda bench, _: measure_resources(bench),
    "scalar": measure_scalar,
    "builds": lambda bench, _: measure_builds(bench),
    "text": measure_text,
    "spark": measure_spark,
    "adapter": measure_adapter,
    "route": measure_route,
}
"""What measures each part of a set, given it and the number of blocks."""
PARTS = (*OF_A_SET, "files", "chroma")


def main() -> None:
    """Build what is missing, measure, print the table and write the JSON."""
    arguments = _arguments()
    bench = open_set(SIZES[arguments.size])
    rows: list[Row] = []
    for part, measure in OF_A_SET.items():
        if part in arguments.parts:
            rows += measure(bench, arguments.blocks)
    if arguments.size != "1m":
        rows = [replace(row, bar=None) for row in rows]
    if "files" in arguments.parts:
        rows += measure_files(arguments.blocks)
    if "chroma" in arguments.parts:
        rows += measure_chroma(open_set(SIZES["200k"]), arguments.blocks)
    title = f"{bench.size.num_rows:,} x {bench.size.dimension}, k = {K}; times in ms"
    if arguments.size != "1m":
        title += "; the bars of queries are defined for SIZE=1m"
    print_table(rows, title)
    _write_json(bench, arguments.json, rows)


def _write_json(bench: BenchmarkSet, target: Path | None, rows: list[Row]) -> None:
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = cache_root() / "results" / f"{bench.size.name}-{now}.json" if target is None else target
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": describe_machine(),
        "set": asdict(bench.size),
        "k": K,
        "load_generator": "benchmarks/load.py (epoll, keep-alive, own process)",
        "page_cache": "warm",
        "rows": [{**asdict(row), "passes": row.passes} for row in rows],
    }
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    print(f"written: {path}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="200k")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--blocks", type=int, default=5, help="blocks of each side per case")
    parser.add_argument("--json", type=Path, help="file to write (default: beside the sets)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
