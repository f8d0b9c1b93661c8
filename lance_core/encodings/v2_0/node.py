"""What a node of an array encoding can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.values import Values


class ArrayNode(Protocol):
    """One node of the tree that describes a page; leaves name buffers of the page."""

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Raise ``CorruptFileError`` if the page's buffers cannot hold ``num_values`` values."""

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Values]:
        """Read ranges of values, in any order, one after another."""

    def raw(self, page: Page) -> RawRows | None:
        """Say where the values lie if they are raw and contiguous, without nulls."""
