"""``lance-serve inspect``: what a Lance file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lance_core.errors import LanceError
from lance_core.file.inspect import inspect_file
from lance_core.file.reader import LanceFileReader

if TYPE_CHECKING:
    from lance_core.file.inspect import FileReport

_FEW_BYTES = 10_000
_LONG = 500


def inspect(
    file: Annotated[str, typer.Argument(help="Path or URI of a `.lance` or `.idx` file.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with every page.")] = False,
    ratios: Annotated[
        bool, typer.Option(help="Read all rows, to compare sizes with Arrow memory.")
    ] = True,
) -> None:
    """Print the container, columns, pages and encodings of a Lance file, and their sizes."""
    try:
        report = inspect_file(LanceFileReader.open_path(file), has_ratios=ratios)
    except LanceError as error:
        Console(stderr=True).print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        raise typer.Exit(1) from error
    if json:
        typer.echo(orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2).decode())
        return
    console = Console()
    _print_container(console, report)
    console.print(_fields(report))
    console.print(_columns(report))


def _print_container(console: Console, report: FileReport) -> None:
    buffers = ", ".join(_bytes(size) for size in report.buffers)
    console.print(f"[bold]{escape(report.path)}[/bold]", highlight=False)
    console.print(
        f"version {report.version}, {_bytes(report.size)}, {report.num_rows:,} rows,"
        f" {len(report.columns)} columns, global buffers: {buffers}"
    )
    for key, value in report.metadata.items():
        shown = value if len(value) <= _LONG else f"{value[:_LONG]}..."
        console.print(f"{escape(key)} = {escape(shown)}", highlight=False)


def _fields(report: FileReport) -> Table:
    table = Table("field", "type", title="Fields", title_justify="left")
    for name in ("in the file", "in Arrow", "ratio"):
        table.add_column(name, justify="right")
    for field in report.fields:
        arrow = "" if field.arrow_bytes is None else _bytes(field.arrow_bytes)
        ratio = "" if field.ratio is None else f"{field.ratio:.2f}"
        name, kind = escape(field.name), escape(field.arrow_type)
        table.add_row(name, kind, _bytes(field.num_bytes), arrow, ratio)
    return table


def _columns(report: FileReport) -> Table:
    table = Table("column", "field", "type", title="Columns", title_justify="left")
    table.add_column("pages", justify="right")
    table.add_column("bytes", justify="right")
    table.add_column("encodings")
    for column in report.columns:
        encodings = [f"{count} x {text}" for text, count in column.encodings.items()]
        table.add_row(
            str(column.index),
            escape(column.path),
            escape(column.logical_type),
            str(len(column.pages)),
            _bytes(column.num_bytes),
            escape("\n".join(encodings)),
        )
    return table


def _bytes(count: int) -> str:
    """Write a number of bytes with about three digits."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _FEW_BYTES:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
