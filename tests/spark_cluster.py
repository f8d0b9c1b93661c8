"""A Spark cluster on loopback: one master and two workers, all children of ours."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

NUM_WORKERS = 2
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "500m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.ui.enabled": "false",
}
"""What a driver needs to say besides the master: one executor on each worker, room for another."""

_MARK = "LANCE_SERVE_TEST_RUN"
_DEADLINE_S = 300.0
_PORT = re.compile(r"service 'sparkMaster' on port (\d+)")
_HOME = str(Path(pyspark.__file__).parent)


class Cluster:
    """A running cluster.

    Parameters
    ----------
    folder
        For logs and work folders.
    java_home
        Java that all of it runs on.
    """

    def __init__(self, folder: Path, java_home: Path) -> None:
        self._folder = folder
        self._mark = uuid.uuid4().hex
        self._java_home = java_home
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self.master = ""

    @property
    def environment(self) -> dict[str, str]:
        """All that processes of the cluster, and drivers, get for environment."""
        return {
            _MARK: self._mark,
            "HOME": str(self._folder),
            "JAVA_HOME": str(self._java_home),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def start(self) -> None:
        """Start everything, and wait until the master knows both workers."""
        log = self._started("Master", "--port", "0")
        self.master = f"spark://127.0.0.1:{_waited_for(log, _PORT)[1]}"
        for number in range(NUM_WORKERS):
            work = str(self._folder / f"work-{number}")
            rest = ("--cores", "2", "--memory", "1400m", "--work-dir", work, self.master)
            self._started("Worker", *rest)
            self._workers.append(self._daemons[-1])
        for number in range(NUM_WORKERS):
            _waited_for(
                log, re.compile(rf"(?:Registering worker[^\n]*\n.*?){{{number + 1}}}", re.DOTALL)
            )

    def executors(self) -> list[int]:
        """Return the processes of executors, children of our workers."""
        return [pid for worker in self._workers for pid in children(worker.pid)]

    def stop(self) -> list[str]:
        """Stop everything by its number; return the command lines of what is left for all that."""
        for process in reversed(self._daemons):
            process.terminate()
        for process in self._daemons:
            process.wait(_DEADLINE_S)
        give_up = time.monotonic() + _DEADLINE_S
        while self.left() and time.monotonic() < give_up:
            time.sleep(0.05)
        return self.left()

    def left(self) -> list[str]:
        """Return the command lines of processes that began with the environment of the cluster."""
        return [_command(pid) for pid in _pids() if self._mark in _environment(pid)]

    def _started(self, role: str, *arguments: str) -> Path:
        log = self._folder / f"{role.lower()}-{len(self._daemons)}.log"
        command = [
            f"{_HOME}/bin/spark-class",
            f"org.apache.spark.deploy.{role.lower()}.{role}",
            *("--host", "127.0.0.1", "--webui-port", "0", *arguments),
        ]
        more = {
            "SPARK_HOME": _HOME,
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # its port is not ours
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as out:
            self._daemons.append(
                subprocess.Popen(  # noqa: S603 - Spark's own scripts
                    command,
                    env={**self.environment, **more},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    cwd=self._folder,
                    start_new_session=True,
                )
            )
        return log


@contextmanager
def running_cluster(folder: Path, java_home: Path) -> Iterator[Cluster]:
    """Run a cluster for a block; nothing of it may be left afterwards."""
    cluster = Cluster(folder, java_home)
    try:
        cluster.start()
        yield cluster
    finally:
        left = cluster.stop()
    assert left == []


def children(pid: int) -> list[int]:
    """Return the processes that a process started and that run."""
    found = []
    for each in _pids():
        with suppress(OSError, IndexError):
            state, parent = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(each)
    return found


def descendants(pid: int) -> list[int]:
    """Return a process and all below it."""
    return [pid, *(each for child in children(pid) for each in descendants(child))]


def _pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()]


def _environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _waited_for(log: Path, pattern: re.Pattern[str]) -> re.Match[str]:
    give_up = time.monotonic() + _DEADLINE_S
    while True:
        text = log.read_text(errors="replace")
        found = pattern.search(text)
        if found is not None:
            return found
        assert time.monotonic() < give_up, text
        time.sleep(0.05)


def freeze(pids: list[int]) -> None:
    """Let processes stand still."""
    _signal(pids, signal.SIGSTOP)


def thaw(pids: list[int]) -> None:
    """Let processes that stand still go on."""
    _signal(pids, signal.SIGCONT)


def kill(pids: list[int]) -> None:
    """End processes at once; they get no chance to say or write anything."""
    _signal(pids, signal.SIGKILL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
