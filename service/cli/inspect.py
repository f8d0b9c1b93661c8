"""``lance-serve inspect``: what a dataset or a Lance file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from lance_core.dataset.inspect import inspect_dataset
from lance_core.errors import DatasetNotFoundError
from lance_core.file.inspect import inspect_file
from lance_core.file.reader import LanceFileReader
from service.cli.output import output
from service.cli.places import (
    BranchOption,
    StorageOptions,
    is_dataset,
    open_for_command,
    parse_options,
    told_errors,
)
from service.cli.show_dataset import show_dataset
from service.cli.show_file import show_file


def inspect(
    place: Annotated[
        str, typer.Argument(help="Dataset, or a `.lance` or `.idx` file: path or URI.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with everything.")] = False,
    ratios: Annotated[
        bool, typer.Option(help="Of a file: read all rows, to compare sizes with Arrow memory.")
    ] = True,
    version: Annotated[
        str | None,
        typer.Option(help="Of a dataset: number or tag of the version; digits alone are a number."),
    ] = None,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Show what a dataset holds and how well its indices cover it, or how a file is encoded."""
    with told_errors():
        if is_dataset(place, storage_option):
            of_dataset = inspect_dataset(open_for_command(place, storage_option, branch, version))
            if not json:
                show_dataset(output(), of_dataset)
            report = of_dataset.to_dict()
        elif Path(place).is_dir():
            raise DatasetNotFoundError(f"{place} is a folder without a dataset: no _versions/")
        else:
            reader = LanceFileReader.open_path(place, parse_options(storage_option))
            of_file = inspect_file(reader, has_ratios=ratios)
            if not json:
                show_file(output(), of_file)
            report = of_file.to_dict()
    if json:
        typer.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
