"""``lance-serve tag``: names for versions, which cleanup keeps."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from service.cli.output import output, print_table
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    StorageOptions,
    open_for_command,
    told_errors,
)

tag = typer.Typer(
    help="List, set and delete names of versions; cleanup keeps what they name.",
    no_args_is_help=True,
)

_Name = Annotated[
    str,
    typer.Argument(
        help="Letters, digits, `.`, `-` and `_`; digits alone are taken for a version's number."
    ),
]
_Version = Annotated[
    int | None, typer.Option(help="Number of the version; the latest if left out.")
]


@tag.command("list")
def list_tags(dataset: DatasetArgument, storage_option: StorageOptions = None) -> None:
    """List all tags."""
    with told_errors():
        tags = open_for_command(dataset, storage_option).tags()
    table = Table("tag", "branch")
    table.add_column("version", justify="right")
    for each in tags:
        branch = "main" if each.branch is None else each.branch
        table.add_row(escape(each.name), escape(branch), str(each.version))
    if tags:
        print_table(output(), table)
    else:
        output().print("no tags")


@tag.command()
def create(
    dataset: DatasetArgument,
    name: _Name,
    version: _Version = None,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Name a version."""
    with told_errors():
        made = open_for_command(dataset, storage_option, branch).create_tag(name, version)
    output().print(f'tag "{escape(made.name)}" names version {made.version}')


@tag.command()
def update(
    dataset: DatasetArgument,
    name: _Name,
    version: _Version = None,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Let a tag name another version."""
    with told_errors():
        made = open_for_command(dataset, storage_option, branch).update_tag(name, version)
    output().print(f'tag "{escape(made.name)}" names version {made.version}')


@tag.command()
def delete(dataset: DatasetArgument, name: _Name, storage_option: StorageOptions = None) -> None:
    """Delete a tag, and nothing of its version."""
    with told_errors():
        open_for_command(dataset, storage_option).delete_tag(name)
    output().print(f'tag "{escape(name)}" is gone')
