"""A driver of a Spark cluster in a process of its own, which runs commands that it is sent.

All its commands share one session. It is run as ``python -m tests.spark_driver``, reads JSON
objects with ``arguments`` of ``lance-pipeline`` and ``dies`` (see `Command`), one per line, and
writes an exit code for each.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from lance_core.io.mapped_store import MappedStore
from lance_core.table.naming import VERSIONS_FOLDER
from pipeline.cli import common
from pipeline.cli.main import app
from pipeline.session import stop_session
from tests.spark_cluster import CONF

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from pyspark.sql import SparkSession

    from tests.spark_cluster import Cluster

    Death = Literal["before", "after"]
    Argument = str | int | Path


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and whether its driver dies ``before`` or ``after`` it publishes a version."""

    arguments: tuple[str, ...]
    dies: Death | None = None


class Driver:
    """The process, as the test that runs it sees it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._log = folder / f"driver-{uuid.uuid4().hex}.log"
        self._errors = self._log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark_driver"],
            env=cluster.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def start(self, *arguments: Argument, dies: Death | None = None) -> None:
        """Let a command begin."""
        settings = [f"--conf={name}={value}" for name, value in CONF.items()]
        texts = [str(each) for each in arguments]
        shared = ["--master", self._cluster.master, "--progress", "plain", *settings]
        command = Command((*texts, *shared), dies)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(command)).encode() + b"\n")
        self._process.stdin.flush()

    def ended(self) -> int:
        """Wait for the end of the command; return its exit code, minus the signal that ended it."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return int(line) if line else self._process.wait()

    def run(self, *arguments: Argument, dies: Death | None = None) -> int:
        """Run a command; return its exit code."""
        self.start(*arguments, dies=dies)
        return self.ended()

    def said(self) -> str:
        """Return what it has written to standard error."""
        return self._log.read_text(errors="replace")


def _die(when: Death) -> None:
    """Let this process die at the next version that it publishes."""
    publish = MappedStore.put_if_absent

    def dying(self: MappedStore, path: str, data: bytes) -> None:
        is_version = path.startswith(f"{VERSIONS_FOLDER}/")
        if not is_version or when == "after":
            publish(self, path, data)
        if is_version:
            os.kill(os.getpid(), signal.SIGKILL)

    MappedStore.put_if_absent = dying  # type: ignore[method-assign]  # that is what it is for


def _run(arguments: Sequence[str]) -> int:
    code = app(args=list(arguments), standalone_mode=False)
    return code if isinstance(code, int) else 0


def main() -> None:
    """Run commands until there are no more."""
    sessions: list[SparkSession] = []
    vars(common)["stop_session"] = sessions.append  # it is for the next command too
    for line in sys.stdin:
        found = json.loads(line)
        if found["dies"] is not None:
            _die(found["dies"])
        print(_run(found["arguments"]), flush=True)  # noqa: T201 - the answer
    for session in sessions[:1]:
        stop_session(session)


if __name__ == "__main__":
    main()
