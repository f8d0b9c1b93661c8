"""How commands print: lines and tables that are never cut, whatever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding

if TYPE_CHECKING:
    from rich.table import Table

_ANY_WIDTH = 1 << 20
_LEAST_FOLDED = 20
"""Characters of a long cell that are left in a line at least."""


def output(*, stderr: bool = False) -> Console:
    """Return what prints lines whole: a terminal wraps them, and no name becomes an emoji."""
    return Console(stderr=stderr, soft_wrap=True, emoji=False)


def print_table(console: Console, table: Table, *, folded: tuple[str, ...] = ()) -> None:
    """Print a table; columns of the names ``folded`` have long cells, which a terminal may fold.

    Other cells are never folded nor cut: a terminal that is too narrow gets a paragraph per row.
    Where there is none, such as in a pipe, lines are as long as they have to be, without a frame.
    """
    for column in table.columns:
        column.no_wrap, column.overflow = column.header not in folded, "fold"
        column.max_width = None if column.no_wrap else _LEAST_FOLDED
    least = _width(console, table)
    for column in table.columns:
        column.max_width = None
    if not console.is_terminal:
        _print_lines(console, table)
    elif least <= console.width:
        console.print(table, soft_wrap=False)
    else:
        _print_paragraphs(console, table)


def _print_lines(console: Console, table: Table) -> None:
    table.box, table.pad_edge, table.padding = None, False, (0, 1)
    whole = console.options.update(width=_width(console, table))
    text = "".join(segment.text for segment in console.render(table, whole))
    for line in text.splitlines():
        console.out(line.rstrip(), highlight=False)


def _print_paragraphs(console: Console, table: Table) -> None:
    if table.title is not None:
        console.print(table.title)
    names = [column.header for column in table.columns[1:]]
    for first, *others in zip(*(column.cells for column in table.columns), strict=True):
        console.print(first, highlight=False)
        told = ", ".join(f"{name} {cell}" for name, cell in zip(names, others, strict=True))
        console.print(Padding(told, (0, 0, 0, 4)), highlight=False, soft_wrap=False)


def _width(console: Console, table: Table) -> int:
    """Return how wide a table would like to be."""
    options = console.options.update(width=_ANY_WIDTH)
    return Measurement.get(console, options, table).maximum
