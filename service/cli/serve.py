"""``lance-serve serve``: run the service."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import uvicorn
from pydantic import ValidationError

from lance_core.errors import LanceError
from lance_core.io.open import open_store
from service.catalog.confinement import local_path
from service.cli.bounded_heads import BoundedHeads
from service.settings import load_settings, to_environment
from service.telemetry.json_logging import configure_logging

if TYPE_CHECKING:
    from service.settings import Settings

_APP = "service.app:create_app_from_environment"
# Clients keep idle connections for 90 s and do not repeat a POST on one that the server closed just
# then, so the server keeps them longer.
_KEEP_ALIVE_S = 120


def serve(
    root: Annotated[
        str | None,
        typer.Option(help="Directory or object-store URI; every NAME.lance below is a table."),
    ] = None,
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
) -> None:
    """Run the service until it is told to stop.

    All settings can also be given as environment variables LANCE_SERVE_*; options win.
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
    settings = _load({name: value for name, value in given.items() if value is not None})
    _require_root(settings)
    _require_disk_cache(settings)
    _require_key_or_loopback(settings)
    os.environ.update(to_environment(settings))
    configure_logging(settings.log_level)
    uvicorn.run(
        _APP,
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        loop="uvloop",
        http=BoundedHeads,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.drain_timeout_s,
    )


def _load(given: dict[str, object]) -> Settings:
    try:
        return load_settings(**given)
    except ValidationError as error:
        mistakes = [f"{mistake['loc'][0]}: {mistake['msg']}" for mistake in error.errors()]
        raise typer.BadParameter("; ".join(mistakes)) from error
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _require_root(settings: Settings) -> None:
    folder = local_path(settings.root)
    if folder is not None and not folder.is_dir():
        raise typer.BadParameter(f"root: there is no directory {folder}")
    try:
        open_store(settings.root, settings.storage_options)
    except LanceError as error:
        raise typer.BadParameter(f"root: {error}") from error


def _require_disk_cache(settings: Settings) -> None:
    try:
        if settings.disk_cache is not None:
            Path(settings.disk_cache).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"disk_cache: {settings.disk_cache}: {error.strerror}") from error


def _require_key_or_loopback(settings: Settings) -> None:
    if settings.api_keys == () and not settings.insecure and not _is_loopback(settings.host):
        raise typer.BadParameter(
            f"everyone who reaches {settings.host} could read all tables: set LANCE_SERVE_API_KEYS,"
            " listen on 127.0.0.1, or say --insecure"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
