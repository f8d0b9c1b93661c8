"""How commands print advice: what is wrong, and the command that mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from lance_core.dataset.advice import Advice


def show_advice(console: Console, advice: Sequence[Advice]) -> None:
    """Print a line for each finding, and one with its command; nothing if there is none."""
    if len(advice) > 0:
        console.print("[bold]Advice[/bold]")
    for each in advice:
        about = "dataset" if each.index is None else each.index
        console.print(f"{escape(about)}: {escape(each.text)}", highlight=False)
        if each.command is not None:
            console.print(f"    {escape(each.command)}", highlight=False)
