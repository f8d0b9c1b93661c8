"""``lance-serve verify``: read everything, and tell what is wrong and where."""

from __future__ import annotations

import typer
from rich.markup import escape

from service.cli.output import output
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    StorageOptions,
    counted,
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
                output().print(escape(str(finding)), highlight=False)
    if num_faults > 0:
        output(stderr=True).print(f"{counted(num_faults, 'fault')} found")
        raise typer.Exit(1)
    output().print("no fault found")
