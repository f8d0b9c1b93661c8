"""``lance-serve serve``: run the service."""

from __future__ import annotations

import ipaddress
import os
import resource
import ssl
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
import uvicorn

from lance_core.errors import LanceError
from lance_core.io.open import open_store
from service.api.access import Access
from service.api.text_models import require_text_model
from service.catalog.confinement import local_path
from service.cli.bounded_heads import BoundedHeads
from service.cli.settings_options import Config, Root, Set, settings_of
from service.cli.tls_files import check_tls_files
from service.cli.workers import Workers
from service.settings_sources import CONFIG_VARIABLE, to_environment
from service.telemetry.json_logging import configure_logging
from service.telemetry.metrics import DIRECTORY_VARIABLE

if TYPE_CHECKING:
    from service.settings import Place, Settings

_APP = "service.app:create_app_from_environment"
# Clients keep idle connections for 90 s and do not repeat a POST on one that the server closed just
# then, so the server keeps them longer.
_KEEP_ALIVE_S = 120
# A worker answers only when all is imported; one that is killed meanwhile would never get there.
_WORKER_START_S = 60


def serve(
    root: Root = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Server processes, each with caches of its own.")
    ] = None,
    disk_cache: Annotated[
        str | None,
        typer.Option(
            help="Local directory that keeps what is read of remote stores, for all workers and"
            " later runs.",
            metavar="DIR",
        ),
    ] = None,
    disk_cache_bytes: Annotated[
        int | None, typer.Option(help="Byte budget of that directory; 16 GiB if left out.")
    ] = None,
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Allow listening beyond loopback without any key."),
    ] = None,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Run the service until it is told to stop.

    All settings can also be given as environment variables LANCE_SERVE_*, or in a file; options
    win, then variables. `lance-serve config` shows them.
    """
    given = {
        "root": root,
        "host": host,
        "port": port,
        "workers": workers,
        "disk_cache": disk_cache,
        "disk_cache_bytes": disk_cache_bytes,
        "insecure": insecure,
    }
    settings = settings_of(config, set_, given).settings
    _require_roots(settings)
    _require_disk_cache(settings)
    _require_text_model(settings)
    _require_key_or_loopback(settings)
    _require_access(settings)
    _require_tls(settings)
    os.environ.pop(CONFIG_VARIABLE, None)
    os.environ.update(to_environment(settings))
    configure_logging(settings.log_level)
    _allow_many_files()
    with ExitStack() as beside:
        if settings.workers > 1:
            folder = beside.enter_context(TemporaryDirectory(prefix="lance-serve-metrics-"))
            os.environ[DIRECTORY_VARIABLE] = folder
        _run(settings)


def _run(settings: Settings) -> None:
    options = _server_options(settings)
    if settings.workers == 1:
        uvicorn.run(_APP, **options)
        return
    config = uvicorn.Config(_APP, workers=settings.workers, **options)
    Workers(config, [config.bind_socket()]).run()


def _server_options(settings: Settings) -> dict[str, Any]:
    return {
        "factory": True,
        "host": settings.host,
        "port": settings.port,
        "loop": "uvloop",
        "http": BoundedHeads,
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": _KEEP_ALIVE_S,
        "timeout_worker_healthcheck": _WORKER_START_S,
        "timeout_graceful_shutdown": settings.drain_timeout_s,
        "ssl_certfile": settings.tls_certificate,
        "ssl_keyfile": settings.tls_key,
        "ssl_keyfile_password": settings.tls_key_password,
        "ssl_ca_certs": settings.tls_client_ca,
        "ssl_cert_reqs": ssl.CERT_NONE if settings.tls_client_ca is None else ssl.CERT_REQUIRED,
    }


def _allow_many_files() -> None:
    """Let the process have as many connections as the system grants; often 1024 is only a start."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _require_roots(settings: Settings) -> None:
    for name, place in settings.places().items():
        _require_root("root" if name is None else f"databases.{name}.root", place)


def _require_root(setting: str, place: Place) -> None:
    folder = local_path(place.root)
    if folder is not None and not folder.is_dir():
        raise typer.BadParameter(f"{setting}: there is no directory {folder}")
    try:
        open_store(place.root, place.storage_options)
    except LanceError as error:
        raise typer.BadParameter(f"{setting}: {error}") from error


def _require_disk_cache(settings: Settings) -> None:
    try:
        if settings.disk_cache is not None:
            Path(settings.disk_cache).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"disk_cache: {settings.disk_cache}: {error.strerror}") from error


def _require_text_model(settings: Settings) -> None:
    try:
        require_text_model(settings)
    except ValueError as error:
        raise typer.BadParameter(f"text_model: {error}") from error


def _require_access(settings: Settings) -> None:
    try:
        Access(settings)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _require_tls(settings: Settings) -> None:
    try:
        check_tls_files(settings)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _require_key_or_loopback(settings: Settings) -> None:
    if not (settings.asks_for_keys or settings.insecure or _is_loopback(settings.host)):
        raise typer.BadParameter(
            f"everyone who reaches {settings.host} could read all tables: set LANCE_SERVE_API_KEYS,"
            " listen on 127.0.0.1, or say --insecure"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
