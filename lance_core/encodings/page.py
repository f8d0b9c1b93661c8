"""One page of a column, and what its layout can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lance_core.encodings.levels import PageData
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps

Pieces = list[tuple[int, int]]
"""Row ranges ``[start, stop)`` of a page, counted from its first row: ascending, disjoint."""


class PageState(Protocol):
    """What a page needs before any row of it can be found."""

    @property
    def nbytes(self) -> int:
        """Memory of the state."""


class Loaded:
    """The state of a page, loaded when a row is first wanted and then kept until it is dropped.

    Two threads that load at the same time both succeed; one of the equal states stays. Who reads
    with a state holds it: it may be dropped meanwhile.
    """

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: PageState | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the state."""
        state = self.state  # others may drop it
        return 0 if state is None else state.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Rows ``[first_row, first_row + num_rows)`` of a column.

    ``buffers`` are ``(offset, size)`` in the file, checked to lie inside it.
    """

    first_row: int
    num_rows: int
    buffers: tuple[tuple[int, int], ...]
    layout: PageLayout
    loaded: Loaded
    first_item: int = 0
    """Elements of the child column that belong to pages before this one; 2.0 lists only."""

    def span(self, buffer: int, start: int, stop: int) -> tuple[int, int]:
        """Return the file range of bytes ``[start, stop)`` of a buffer."""
        offset = self.buffers[buffer][0]
        return offset + start, offset + stop

    def whole(self, buffer: int) -> tuple[int, int]:
        """Return the file range of a whole buffer."""
        offset, size = self.buffers[buffer]
        return offset, offset + size


class PageLayout(Protocol):
    """How the rows of a page are laid out; shared by all pages that are laid out alike."""

    def check(self, page: Page, place: Place) -> None:
        """Raise ``CorruptFileError`` if the page's buffers contradict the layout."""

    def read(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[list[PageData]]:
        """Read rows of the page; the pieces come out in their order."""

    def direct(self, page: Page) -> DirectPage | None:
        """Say how rows can be found by arithmetic alone, or None where that is impossible."""


@dataclass(frozen=True, slots=True)
class RawRows:
    """Rows one after another from byte ``offset`` of the file, ``row_bytes`` each."""

    offset: int
    row_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class ConstantRow:
    """All rows are equal to these bytes."""

    value: bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return len(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class DirectChunks:
    """Mini-block chunks without levels: rows behind an 8-byte header, raw or inline-packed.

    The chunk table of the page says where.
    """

    row_bytes: int
    is_packed: bool


DirectPage = RawRows | ConstantRow | DirectChunks
