"""What ``lance-serve inspect`` shows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from service.cli.output import print_table
from service.cli.places import bytes_text, counted

if TYPE_CHECKING:
    from rich.console import Console

    from lance_core.file.inspect import FileReport

_LONG = 500


def show_file(console: Console, report: FileReport) -> None:
    """Print container, fields and columns."""
    _print_container(console, report)
    print_table(console, _fields(report), folded=("type",))
    print_table(console, _columns(report), folded=("type", "encodings"))


def _print_container(console: Console, report: FileReport) -> None:
    buffers = ", ".join(bytes_text(size) for size in report.buffers)
    console.print(f"[bold]{escape(report.path)}[/bold]", highlight=False)
    console.print(
        f"version {report.version}, {bytes_text(report.size)}, {counted(report.num_rows, 'row')},"
        f" {counted(len(report.columns), 'column')}, global buffers: {buffers}"
    )
    for key, value in report.metadata.items():
        shown = value if len(value) <= _LONG else f"{value[:_LONG]}..."
        console.print(f"{escape(key)} = {escape(shown)}", highlight=False)


def _fields(report: FileReport) -> Table:
    table = Table("field", "type", title="Fields", title_justify="left")
    for name in ("in the file", "in Arrow", "ratio"):
        table.add_column(name, justify="right")
    for field in report.fields:
        arrow = "" if field.arrow_bytes is None else bytes_text(field.arrow_bytes)
        ratio = "" if field.ratio is None else f"{field.ratio:.2f}"
        name, kind = escape(field.name), escape(field.arrow_type)
        table.add_row(name, kind, bytes_text(field.num_bytes), arrow, ratio)
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
            bytes_text(column.num_bytes),
            escape("\n".join(encodings)),
        )
    return table
