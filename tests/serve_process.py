"""``lance-serve serve`` as a process of its own, on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from tests.live_server import wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def free_port() -> Any:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until_healthy(url: str) -> None:
    """Wait until it answers, whether it can search or not."""
    for _ in range(3000):
        try:
            if httpx.get(f"{url}/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise TimeoutError(url)


@contextmanager
def serve(root: Path, *options: Any, wait: Any = wait_until_ready) -> Iterator[Any]:
    """Run the command and yield the process and its port; ``wait`` takes the URL."""
    port = free_port()
    command = [
        sys.executable,
        "-c",
        "from service.cli.main import app; app()",
        "serve",
        "--root",
        str(root),
        "--port",
        str(port),
        *options,
    ]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("LANCE_SERVE_")
    }
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stderr=subprocess.PIPE, env=environment
    )
    try:
        wait(f"http://127.0.0.1:{port}")
        yield process, port
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
        assert process.stderr is not None
        process.stderr.close()
