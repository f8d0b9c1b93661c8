"""``lance-serve serve`` as a process."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import pytest
from typer.testing import CliRunner

from service.cli.bounded_heads import BoundedHeads
from service.cli.main import app
from service.settings import digest_of
from service.settings_sources import load_settings
from tests.certificates import Authority
from tests.metric_values import value
from tests.serve_process import serve, wait_until_healthy

if TYPE_CHECKING:
    from collections.abc import Iterator


def wait_until_refused(url: str) -> None:
    """Wait until nobody listens; before that one of several workers may hang up unasked."""
    for _ in range(1000):
        try:
            httpx.get(url)
        except httpx.ConnectError:
            return
        except httpx.TransportError:
            continue
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
    assert "Finished server process" in lines[-1]["message"]


@pytest.mark.slow
def test_several_workers_share_the_port_and_the_settings(tmp_path: Path) -> None:
    (tmp_path / "t1.lance").mkdir()
    with serve(tmp_path, "--workers", "2", wait=wait_until_healthy) as (process, port):
        for _ in range(10):
            answer = httpx.get(f"http://127.0.0.1:{port}/v1/table")
            assert answer.json()["tables"] == ["t1"]
        metrics = ""
        for _ in range(100):
            metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
            if value(metrics, "lance_serve_threads", lane="search") == 4:
                break
            time.sleep(0.1)
        assert value(metrics, "lance_serve_threads", lane="search") == 4
        counted = {"operation": "list_all_tables", "status": "200"}
        assert value(metrics, "lance_serve_requests_total", **counted) == 10
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@pytest.mark.slow
def test_keys_are_reloaded_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(keys_of("old"))
    options = ["--set", f"api_keys_file={file}"]
    with serve(tmp_path, *options, wait=wait_until_healthy) as (process, port):
        url = f"http://127.0.0.1:{port}/v1/table"

        def status(key: str) -> int:
            return httpx.get(url, headers={"x-api-key": key}).status_code

        assert (status("old"), status("new")) == (200, 401)
        file.write_text(keys_of("new"))
        process.send_signal(signal.SIGHUP)
        for _ in range(100):
            if status("new") == 200:
                break
            time.sleep(0.05)
        assert (status("old"), status("new")) == (401, 200)
        assert process.poll() is None


@pytest.mark.slow
def test_workers_read_keys_anew_and_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(keys_of("old"))
    options = ["--set", f"api_keys_file={file}", "--workers", "2"]
    with serve(tmp_path, *options, wait=wait_until_healthy) as (process, port):
        url = f"http://127.0.0.1:{port}/v1/table"
        before = workers_of(process)
        file.write_text(keys_of("new"))
        process.send_signal(signal.SIGHUP)
        answers: list[int] = []
        for _ in range(200):
            answers.append(httpx.get(url, headers={"x-api-key": "new"}).status_code)
            if answers[-20:] == [200] * 20:
                break
            time.sleep(0.05)
        assert answers[-20:] == [200] * 20
        assert {*answers} <= {200, 401}
        assert workers_of(process) == before
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        lines = [orjson.loads(line) for line in process.stderr.read().splitlines()]
    assert sum("keys.yaml anew" in line["message"] for line in lines) >= 2


@pytest.mark.slow
def test_workers_that_finish_take_no_new_connections(tmp_path: Path) -> None:
    with serve(tmp_path, "--workers", "2", wait=wait_until_healthy) as (process, port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(
                b"POST /v1/table/nope/describe HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{"
            )
            httpx.get(f"http://127.0.0.1:{port}/health")
            process.send_signal(signal.SIGTERM)
            wait_until_refused(f"http://127.0.0.1:{port}/health")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=10)
            connection.sendall(b"}")
            assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
        process.wait(30)


def workers_of(process: Any) -> set[str]:
    """Return the processes of the servers, which answer on ports of their own threads."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {
        each for each in children if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()
    }


def keys_of(key: str) -> str:
    return f"keys: [{{name: somebody, sha256: {digest_of(key).removeprefix('sha256:')}}}]"


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Let the environment name no settings, and be what it was afterwards: the command sets it."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith("LANCE_SERVE_")]:
        del os.environ[name]
    yield
    os.environ.clear()
    os.environ.update(before)


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
        (["--root", ".", "--set", "colour=blue"], "colour"),
        (["--root", ".", "--set", "port"], "NAME=VALUE"),
        (["--root", ".", "--config", "/no/such/file.toml"], "No such file"),
        (["--root", ".", "--set", "jwt_keys=x.json"], "jwt_audience"),
        (["--root", ".", "--set", "api_keys_file=/no/such/file.yaml"], "api_keys_file: /no/such"),
        (["--root", ".", "--set", "tls_certificate=/no/such.pem"], "tls_certificate: there is no"),
        (["--root", ".", "--set", "tls_certificate=pyproject.toml"], "tls_certificate, tls_key"),
        (["--root", ".", "--set", "tls_client_ca=x.pem"], "tls_certificate"),
    ],
    ids=repr,
)
def test_settings_that_cannot_work_are_refused_at_start(options: Any, word: str) -> None:
    outcome = CliRunner().invoke(app, ["serve", *options])
    assert outcome.exit_code == 2
    assert word in outcome.output


TOKENS = [
    option
    for setting in ("keys=https://issuer.example/jwks", "audience=us", "issuer=them")
    for option in ("--set", f"jwt_{setting}")
]


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        (["--host", "0.0.0.0", "--insecure"], {}),  # noqa: S104 - asked for
        (["--host", "0.0.0.0"], {"LANCE_SERVE_API_KEYS": "secret"}),  # noqa: S104 - with a key
        (["--host", "::1"], {}),
        (["--host", "localhost"], {}),
        (["--host", "0.0.0.0", *TOKENS], {}),  # noqa: S104 - with tokens
    ],
    ids=repr,
)
def test_the_server_starts_with_a_key_or_on_loopback_or_when_told_so(
    options: Any, variables: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = []
    monkeypatch.setattr("uvicorn.run", lambda target, **given: started.append(given))
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    outcome = CliRunner().invoke(app, ["serve", "--root", str(tmp_path), *options])
    assert outcome.exit_code == 0
    (given,) = started
    assert (given["loop"], given["http"]) == ("uvloop", BoundedHeads)
    assert given["timeout_graceful_shutdown"] == 30


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


def test_an_unknown_variable_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_SERVE_CASH_BYTES", "1")
    outcome = CliRunner().invoke(app, ["serve", "--root", "."])
    assert outcome.exit_code == 2
    assert "LANCE_SERVE_CASH_BYTES" in outcome.output


def test_warm_compiles_with_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.cli.warm.compile_kernels", lambda report: report("pq", 0, 1))
    outcome = CliRunner().invoke(app, ["warm"])
    assert outcome.exit_code == 0
    assert "kernels are compiled" in outcome.output


def test_the_settings_in_effect_are_shown_with_their_sources_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('root = "/data"\nstorage_options = {aws_secret_access_key = "letters"}\n')
    monkeypatch.setenv("LANCE_SERVE_API_KEYS", "letters")
    options = ["--config", str(file), "--set", "max_k=7"]
    options += ["--set", "tracing_endpoint=http://me:letters@host/"]
    outcome = CliRunner().invoke(app, ["config", *options])
    assert outcome.exit_code == 0
    shown = {line.split()[0]: line.split()[1:] for line in outcome.output.splitlines()}
    assert shown["root"][:3] == ["/data", "file", str(file)]
    assert shown["max_k"][:2] == ["7", "option"]
    assert shown["port"][:2] == ["8000", "default"]
    assert shown["tracing_endpoint"][:2] == ["http://(hidden)@host/", "option"]
    assert shown["api_keys"][:3] == ["(hidden)", "variable", "LANCE_SERVE_API_KEYS"]
    assert shown["storage_options"][:2] == ["(hidden)", "file"]
    assert "letters" not in outcome.output
    assert digest_of("letters") not in outcome.output


def test_tls_is_spoken_as_the_settings_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[dict[str, Any]] = []
    monkeypatch.setattr("uvicorn.run", lambda target, **given: started.append(given))
    authority = Authority(tmp_path)
    certificate, key = map(str, authority.issue("127.0.0.1"))
    values = {
        "certificate": certificate,
        "key": key,
        "key_password": "unused",
        "client_ca": str(authority.file),
    }
    settings = [
        option for name, value in values.items() for option in ("--set", f"tls_{name}={value}")
    ]
    for options in ([], settings):
        command = ["serve", "--root", str(tmp_path), *options]
        assert CliRunner().invoke(app, command).exit_code == 0
        for name in [name for name in os.environ if name.startswith("LANCE_SERVE_")]:
            del os.environ[name]
    given = ("ssl_certfile", "ssl_keyfile", "ssl_keyfile_password", "ssl_ca_certs")
    assert [started[0][name] for name in given] == [None] * 4
    assert [started[1][name] for name in given] == list(values.values())
    assert [each["ssl_cert_reqs"] for each in started] == [ssl.CERT_NONE, ssl.CERT_REQUIRED]
    wrong = (
        (settings[:2], "hold no certificate with its key"),
        ([*settings[:4], "--set", "tls_client_ca=pyproject.toml"], "tls_client_ca: pyproject.toml"),
    )
    for options, told in wrong:
        found = CliRunner().invoke(app, ["serve", "--root", str(tmp_path), *options])
        assert found.exit_code == 2
        assert told in " ".join(found.output.replace("│", " ").split())
