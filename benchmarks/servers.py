"""Start servers as users would, and read the CPU time that they spend."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.peer_app import ROOT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOST = "127.0.0.1"
READY_TIMEOUT_S = 180
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    pid: int
    port: int

    def cpu_ms(self) -> float:
        """Return the CPU time of the process and its descendants, user and system, so far."""
        return sum(_cpu_ticks(pid) for pid in _family(self.pid)) * 1e3 / TICKS_PER_S


@contextmanager
def start_ours(root: Path, log: Path) -> Iterator[Server]:
    """Serve the datasets below ``root`` with lance-serve."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("lance-serve")), "serve"]
    options = ["--root", str(root), "--host", HOST, "--port", str(port)]
    with running([*command, *options], port, {}, log) as server:
        yield server


@contextmanager
def start_peer(root: Path, log: Path) -> Iterator[Server]:
    """Serve the same datasets with pylance behind ``peer_app``."""
    variables = {ROOT_VARIABLE: str(root)}
    with _uvicorn("benchmarks.peer_app:create_app", "--factory", variables, log) as server:
        yield server


@contextmanager
def start_floor(log: Path) -> Iterator[Server]:
    """Serve ``floor_app``, which answers anything at once."""
    with _uvicorn("benchmarks.floor_app:app", "--lifespan=off", {}, log) as server:
        yield server


@contextmanager
def start_adapter(root: Path, log: Path) -> Iterator[Server]:
    """Serve the same datasets with pylance's own REST server."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.adapter_app", str(root), str(port)]
    with running(command, port, {}, log, ready="/v1/namespace/%24/list") as server:
        yield server


@contextmanager
def _uvicorn(app: str, option: str, variables: dict[str, str], log: Path) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", app, option, "--no-access-log"]
    options = ["--host", HOST, "--port", str(port), "--loop", "uvloop", "--http", "httptools"]
    with running([*command, *options], port, variables, log) as server:
        yield server


@contextmanager
def running(
    command: Sequence[str],
    port: int,
    variables: dict[str, str],
    log: Path,
    *,
    ready: str = "/ready",
) -> Iterator[Server]:
    """Run a server with some more variables; it answers ``ready`` when this goes on."""
    with log.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603 - our own command line
            command, env={**os.environ, **variables}, stdout=sink, stderr=sink
        )
        try:
            _wait_until_ready(process, f"http://{HOST}:{port}{ready}", log)
            yield Server(process.pid, port)
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=5):  # noqa: S310 - our own address
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"the server did not become ready:\n{log.read_text()}")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def _cpu_ticks(pid: int) -> int:
    # After the command in parentheses: utime and stime are fields 14 and 15, then those of
    # children that were waited for.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])
