"""``lance-serve index list``: the indices of a dataset, and what to do about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import typer
from rich.markup import escape
from rich.table import Table

from lance_core.dataset.inspect import advice_for
from service.cli.output import output, print_table
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    JsonOption,
    StorageOptions,
    bytes_text,
    open_for_command,
    told_errors,
)
from service.cli.show_advice import show_advice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.query.index_statistics import IndexStatistics


def list_indices(
    dataset: DatasetArgument,
    json: JsonOption = False,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """List all indices: kind, segments, rows that they cover, size, and what should be done."""
    with told_errors():
        opened = open_for_command(dataset, storage_option, branch)
        indices = opened.list_indices()
        advice = [each for each in advice_for(opened, indices) if each.index is not None]
    if json:
        report = [
            {**each.to_dict(), "advice": [one for one in advice if one.index == each.name]}
            for each in indices
        ]
        typer.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    console = output()
    if len(indices) == 0:
        console.print("no indices")
        return
    print_table(console, index_table(indices))
    show_advice(console, advice)


def index_table(indices: Sequence[IndexStatistics]) -> Table:
    """Return a table with a line per index."""
    table = Table("index", "column", "kind", "metric")
    for name in ("segments", "partitions", "rows", "not indexed", "size"):
        table.add_column(name, justify="right")
    for each in indices:
        table.add_row(
            escape(each.name),
            escape(", ".join(each.columns)),
            each.index_type,
            "-" if each.metric is None else each.metric,
            str(len(each.segments)),
            "-" if each.num_partitions is None else f"{each.num_partitions:,}",
            f"{each.num_indexed_rows:,}",
            f"{each.num_unindexed_rows:,}",
            bytes_text(each.num_bytes),
        )
    return table
