"""``lance-serve delete``: delete rows."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.output import output
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    StorageOptions,
    counted,
    open_for_command,
    told_errors,
)


def delete(
    dataset: DatasetArgument,
    where: Annotated[
        str, typer.Argument(help="Which rows, such as `id IN (1, 2) AND name IS NOT NULL`.")
    ],
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Delete the rows for which a predicate is true; old versions keep them until cleanup.

    It is written as the filters of searches: =, <>, <, IN (...), BETWEEN ... AND ..., LIKE, IS NULL
    and functions such as lower(name), joined by AND, OR, NOT and parentheses. Texts stand in single
    quotes, names with odd characters between backticks.
    """
    with told_errors():
        before = open_for_command(dataset, storage_option, branch)
        after = before.delete(where)
        deleted = before.count_rows() - after.count_rows()
        output().print(f"version {after.version}: deleted {counted(deleted, 'row')}")
