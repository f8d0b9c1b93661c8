"""The command ``lance-serve``."""

from __future__ import annotations

import typer

from service.cli.export_openapi import export_openapi
from service.cli.inspect_file import inspect
from service.cli.serve import serve
from service.cli.warm import warm

app = typer.Typer(
    name="lance-serve",
    help="Serve Lance datasets over HTTP.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
)
app.command()(serve)
app.command()(warm)
app.command()(inspect)
app.command("openapi")(export_openapi)
