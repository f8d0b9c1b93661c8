"""The command ``lance-serve``."""

from __future__ import annotations

import typer

from service.cli.cleanup import cleanup
from service.cli.compact import compact
from service.cli.config import config
from service.cli.delete import delete
from service.cli.export_openapi import export_openapi
from service.cli.index import index
from service.cli.ingest import ingest
from service.cli.inspect import inspect
from service.cli.key import key
from service.cli.search import search
from service.cli.serve import serve
from service.cli.tag import tag
from service.cli.verify import verify
from service.cli.warm import warm

app = typer.Typer(
    name="lance-serve",
    help="Serve Lance datasets over HTTP, and look after them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
)

_SERVICE, _DATA, _UPKEEP = "The service", "Rows and versions", "Upkeep"
app.command(rich_help_panel=_SERVICE)(serve)
app.command(rich_help_panel=_SERVICE)(config)
app.add_typer(key, name="key", rich_help_panel=_SERVICE)
app.command(rich_help_panel=_SERVICE)(warm)
app.command("openapi", rich_help_panel=_SERVICE)(export_openapi)
app.command(rich_help_panel=_DATA)(search)
app.command(rich_help_panel=_DATA)(ingest)
app.command(rich_help_panel=_DATA)(delete)
app.add_typer(tag, name="tag", rich_help_panel=_DATA)
app.command(rich_help_panel=_UPKEEP)(inspect)
app.command(rich_help_panel=_UPKEEP)(verify)
app.add_typer(index, name="index", rich_help_panel=_UPKEEP)
app.command(rich_help_panel=_UPKEEP)(compact)
app.command(rich_help_panel=_UPKEEP)(cleanup)
