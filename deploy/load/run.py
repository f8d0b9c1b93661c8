"""``make load``: ask a service as fast as it answers, and say how it did.

Without ``--url`` the example dataset is served for the time of the test.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from queries import made_up, recorded, written

from examples.demo import find_port, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).parent
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def main() -> None:
    """Run a load test, and print its figures."""
    given = _arguments()
    headers = {} if given.api_key == "" else {"x-api-key": given.api_key}
    with _served(given.url) as url, tempfile.TemporaryDirectory() as folder:
        queries = (
            made_up(url, given.table, headers) if given.queries is None else recorded(given.queries)
        )
        file = Path(folder) / "queries.jsonl" if given.write is None else given.write
        file.write_text(written(queries))
        print(f"{len(queries)} queries, {given.users} connections, {given.seconds} s", flush=True)
        if given.tool == "wrk":
            _run_wrk(given, url, file)
        else:
            _show(_run_locust(given, url, file), given.seconds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="a running service; without, the example is served")
    parser.add_argument("--table", default="wordnet", help="queries are made up from it")
    parser.add_argument("--queries", type=Path, help="JSON lines with path and body instead")
    parser.add_argument("--write", type=Path, help="keep the queries in this file")
    parser.add_argument("--seconds", type=int, default=30, help="how long to ask")
    parser.add_argument("--users", type=int, default=8, help="connections at one time")
    parser.add_argument("--tool", choices=("locust", "wrk"), default="locust")
    parser.add_argument("--api-key", default="", help="sent as x-api-key")
    return parser.parse_args()


@contextmanager
def _served(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url.rstrip("/")
        return
    with serving(find_port(8000)) as (_, own):
        yield own


def _run_locust(given: argparse.Namespace, url: str, file: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "locust", "-f", str(_HERE / "locustfile.py"), "--host", url]
    options = ["--headless", "--json", "--users", str(given.users), "--loglevel", "ERROR"]
    limits = ["--spawn-rate", str(given.users), "--run-time", f"{given.seconds}s"]
    environment = {**os.environ, "LOAD_QUERIES": str(file), "LOAD_API_KEY": given.api_key}
    done = subprocess.run(  # noqa: S603 - our own command line
        [*command, *options, *limits], env=environment, capture_output=True, check=False
    )
    if done.stdout.strip() == b"":  # Locust exits with 1 when any request failed
        raise SystemExit(f"Locust ended with status {done.returncode}: {done.stderr.decode()}")
    figures: list[dict[str, Any]] = json.loads(done.stdout)
    return figures


def _show(figures: list[dict[str, Any]], seconds: int) -> None:
    """Print throughput, percentiles and errors of all requests together."""
    times: dict[float, int] = {}
    for each in figures:
        for time, number in each["response_times"].items():
            times[float(time)] = times.get(float(time), 0) + number
    num_requests = sum(times.values())
    if num_requests == 0:
        raise SystemExit("no request was answered")
    print(f"  throughput {num_requests / seconds:10.1f} requests/s")
    for name, share in _SHARES.items():
        print(f"  {name}        {_percentile(times, share):10.1f} ms")
    print(f"  errors     {sum(each['num_failures'] for each in figures):10d}")


def _percentile(times: dict[float, int], share: float) -> float:
    left = share * sum(times.values())
    for time, number in sorted(times.items()):
        left -= number
        if left <= 0:
            return time
    return max(times)


def _run_wrk(given: argparse.Namespace, url: str, file: Path) -> None:
    tool = shutil.which("wrk")
    if tool is None:
        raise SystemExit("there is no wrk here (Debian: apt install wrk); take --tool locust")
    command = [tool, "-t", "2", "-c", str(given.users), "-d", f"{given.seconds}s", "--latency"]
    script = ["-s", str(_HERE / "queries.lua"), url, "--", str(file)]
    key = [] if given.api_key == "" else [given.api_key]
    subprocess.run([*command, *script, *key], check=True)  # noqa: S603 - our own command line


if __name__ == "__main__":
    main()
