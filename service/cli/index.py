"""``lance-serve index``: make, list, maintain and drop the indices of a dataset."""

from __future__ import annotations

import typer

from service.cli.index_create import create
from service.cli.index_list import list_indices
from service.cli.index_upkeep import drop, optimize, remap

index = typer.Typer(
    help="Make indices, see how they are, keep them up to date, and drop them.",
    no_args_is_help=True,
)
index.command()(create)
index.command("list")(list_indices)
index.command()(optimize)
index.command()(remap)
index.command()(drop)
