"""``lance-serve serve`` as a process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import pytest
from typer.testing import CliRunner

from service.cli.bounded_heads import BoundedHeads
from service.cli.main import app
from service.settings import load_settings
from tests.live_server import wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def free_port() -> Any:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def serve(root: Path, *options: Any) -> Iterator[Any]:
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
        wait_until_ready(f"http://127.0.0.1:{port}")
        yield process, port
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
        assert process.stderr is not None
        process.stderr.close()


def wait_until_refused(url: str) -> None:
    for _ in range(1000):
        try:
            httpx.get(url)
        except httpx.TransportError:
            return
    raise TimeoutError(url)


def test_sigterm_lets_running_requests_finish(tmp_path: Path) -> None:
    with serve(tmp_path) as (process, port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(
                b"POST /v1/table/nope/describe HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{"
            )
            httpx.get(f"http://127.0.0.1:{port}/health")
            process.send_signal(signal.SIGTERM)
            wait_until_refused(f"http://127.0.0.1:{port}/health")
            connection.sendall(b"}")
            assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
        assert process.wait(10) in {0, -signal.SIGTERM}
        lines = [orjson.loads(line) for line in process.stderr.read().splitlines()]
    assert {"level", "logger", "message", "time"} <= set.intersection(*map(set, lines))
    assert any(line.get("path") == "/v1/table/nope/describe" for line in lines)


@pytest.mark.slow
def test_several_workers_share_the_port_and_the_settings(tmp_path: Path) -> None:
    (tmp_path / "t1.lance").mkdir()
    with serve(tmp_path, "--workers", "2") as (process, port):
        for _ in range(10):
            answer = httpx.get(f"http://127.0.0.1:{port}/v1/table")
            assert answer.json()["tables"] == ["t1"]
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("LANCE_SERVE_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--root", ".", "--host", "0.0.0.0"], "--insecure"),  # noqa: S104 - the refusal
        (["--root", ".", "--host", "example.org"], "--insecure"),
        (["--root", "/no/such/place"], "no directory"),
        (["--root", "gopher://place"], "root"),
        ([], "root"),
        (["--root", ".", "--port", "70000"], "port"),
        (["--root", ".", "--workers", "0"], "workers"),
        (["--root", ".", "--disk-cache", "/dev/null/below"], "disk_cache"),
        (["--root", ".", "--disk-cache-bytes", "0"], "disk_cache_bytes"),
    ],
    ids=repr,
)
@pytest.mark.usefixtures("clean")
def test_settings_that_cannot_work_are_refused_at_start(options: Any, word: str) -> None:
    outcome = CliRunner().invoke(app, ["serve", *options])
    assert outcome.exit_code == 2
    assert word in outcome.output


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (["--host", "0.0.0.0", "--insecure"], {}),  # noqa: S104 - asked for
        (["--host", "0.0.0.0"], {"LANCE_SERVE_API_KEYS": "secret"}),  # noqa: S104 - with a key
        (["--host", "::1"], {}),
        (["--host", "localhost"], {}),
    ],
    ids=repr,
)
def test_the_server_starts_with_a_key_or_on_loopback_or_when_told_so(
    options: Any, variables: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = []
    monkeypatch.setattr("uvicorn.run", lambda target, **given: started.append(given))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    outcome = CliRunner().invoke(app, ["serve", "--root", str(tmp_path), *options])
    assert outcome.exit_code == 0
    (given,) = started
    assert (given["loop"], given["http"], given["workers"]) == ("uvloop", BoundedHeads, 1)
    assert given["timeout_graceful_shutdown"] == 30
    for name in [name for name in os.environ if name.startswith("LANCE_SERVE_")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("clean")
def test_a_disk_cache_is_made_and_handed_to_the_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = []
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: seen.append(load_settings()))
    folder = tmp_path / "a" / "cache"
    options = ["--disk-cache", str(folder), "--disk-cache-bytes", "1000"]
    outcome = CliRunner().invoke(app, ["serve", "--root", str(tmp_path), *options])
    assert outcome.exit_code == 0
    assert folder.is_dir()
    assert [(each.disk_cache, each.disk_cache_bytes) for each in seen] == [(str(folder), 1000)]
    for name in [name for name in os.environ if name.startswith("LANCE_SERVE_")]:
        monkeypatch.delenv(name)


def test_an_unknown_variable_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_SERVE_CASH_BYTES", "1")
    outcome = CliRunner().invoke(app, ["serve", "--root", "."])
    assert outcome.exit_code == 2
    assert "LANCE_SERVE_CASH_BYTES" in outcome.output


def test_warm_compiles_with_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.cli.warm.warm_kernels", lambda report: report("pq", 0, 1))
    outcome = CliRunner().invoke(app, ["warm"])
    assert outcome.exit_code == 0
    assert "kernels are compiled" in outcome.output
