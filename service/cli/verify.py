"""``lance-serve verify``: read everything, and tell what is wrong and where."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.markup import escape

from service.cli.places import (
    BranchOption,
    DatasetArgument,
    StorageOptions,
    open_for_command,
    progress_bar,
    told_errors,
)


def verify(
    dataset: DatasetArgument, branch: BranchOption = None, storage_option: StorageOptions = None
) -> None:
    """Read every file of every version, and check all that the format demands of them.

    All branches are read, with --branch only that one.
    Prints one line per fault and ends with status 1 if there is any.
    """
    num_faults = 0
    with told_errors():
        opened = open_for_command(dataset, storage_option, branch)
        with progress_bar("versions", None) as bar:
            for finding in opened.verify(progress=bar.move_to):
                num_faults += 1
                Console().print(escape(str(finding)), highlight=False, soft_wrap=True)
    if num_faults > 0:
        Console(stderr=True).print(f"{num_faults} faults found")
        raise typer.Exit(1)
    Console().print("no fault found")
