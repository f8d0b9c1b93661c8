"""The pages of a column, each described when it is first wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from lance_core.encodings.page import Page


class PageList:
    """The pages of a column that have rows, in row order; safe to share between threads.

    Parameters
    ----------
    first_rows
        Shape ``(pages + 1,)``: the first row of each page, and the number of rows.
    num_bytes
        Shape ``(pages,)``: bytes of the buffers of each page.
    describe
        Builds a page by its position. Two threads may both call it for one page; all get the page
        that was ready first.
    """

    def __init__(
        self,
        first_rows: NDArray[np.int64],
        num_bytes: NDArray[np.int64],
        describe: Callable[[int], Page],
    ) -> None:
        self.first_rows = first_rows
        self.num_bytes = num_bytes
        self._describe = describe
        self._described: dict[int, Page] = {}

    @property
    def num_rows(self) -> int:
        """Rows of all pages."""
        return int(self.first_rows[-1])

    @property
    def num_described(self) -> int:
        """Pages that have been described."""
        return len(self._described)

    def __len__(self) -> int:
        return len(self.first_rows) - 1

    def __getitem__(self, position: int) -> Page:
        """Return a page.

        Raises
        ------
        CorruptFileError
            A buffer lies outside the file or contradicts the page's layout.
        UnsupportedFeatureError
            The page is encoded in a way that is not read.
        """
        page = self._described.get(position)
        if page is None:
            page = self._described.setdefault(position, self._describe(position))
        return page

    def __iter__(self) -> Iterator[Page]:
        return (self[position] for position in range(len(self)))
