"""What tests do with the pages of the console."""

from __future__ import annotations

import json
from typing import Any

HOSTILE = (
    "<img src=x onerror=\"document.title='hacked'\">",
    "<script>document.title='hacked'</script>",
    "</td></table><h1>out</h1>",
    "javascript:alert(1)",
    "' OR 1=1 --",
)
LONG = 9_007_199_254_740_993  # no double has it


def select_mode(page: Any, name: Any) -> None:
    """Choose what to search by."""
    page.locator(".mode", has_text=name).click()


def ask(page: Any, *, waits_for: Any = '.answer [role="tabpanel"] table') -> None:
    """Send the form and wait for the answer."""
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator(waits_for).first.wait_for()


def ask_by_vector(page: Any, vector: Any, *, refine: Any = None, probes: Any = None) -> None:
    """Search by a pasted vector."""
    select_mode(page, "Vector")
    page.get_by_label("Vector", exact=True).last.fill(json.dumps(vector))
    for label, value in (("Refine", refine), ("Probes", probes)):
        page.get_by_label(label).fill("" if value is None else str(value))
    ask(page)


def row_texts(page: Any, column: Any) -> list[Any]:
    """Return the texts of one column of the answer."""
    heads = page.locator(".answer th").all_inner_texts()
    cells = page.locator(f".answer tbody td:nth-child({heads.index(column) + 1})")
    return [text.strip() for text in cells.all_inner_texts()]
