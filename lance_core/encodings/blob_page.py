"""Pages of blobs, version 1: positions and sizes, packed in a page of their own (4.6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.levels import PageData
from lance_core.encodings.mini_block import MiniBlock
from lance_core.encodings.mini_block_run import MiniBlockRun
from lance_core.encodings.page import Loaded
from lance_core.encodings.passing import PassedPages
from lance_core.encodings.values import FixedWidth, Packed

if TYPE_CHECKING:
    from lance_core.encodings.levels import Layers
    from lance_core.encodings.page import DirectPage, Page, PageLayout, Pieces
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps

_BITS = 64
_REPETITION_BITS = np.uint64(16)


@dataclass(frozen=True, slots=True, eq=False)
class BlobPage:
    """``inner`` is the page of descriptors; ``layers`` are those of the values.

    A value that is null has size 0, and the position holds its definition level.
    """

    inner: PageLayout
    layers: Layers

    def check(self, page: Page, place: Place) -> None:
        """Check the page of descriptors; pylance loses the lists around blobs of this version."""
        if self.layers.num_lists > 0:
            raise place.unsupported("lists of blobs in a file of 2.1")
        self.inner.check(page, place)

    def read(self, page: Page, pieces: Pieces, place: Place) -> ReadSteps[list[PageData]]:
        """Read descriptors and turn the marks of nulls into levels."""
        if isinstance(self.inner, MiniBlock):
            run = cast("MiniBlockRun | None", page.loaded.state)
            if run is None:
                alone = replace(page, first_row=0, layout=self.inner, loaded=Loaded())
                run = MiniBlockRun(
                    [alone], place, PassedPages(row_bytes=0), may_join_dictionaries=True
                )
                page.loaded.state = run
            parts = yield from run.read(pieces, pieces)
        else:
            parts = yield from self.inner.read(page, pieces, place)
        return [self._with_levels(part, place) for part in parts]

    def direct(self, page: Page) -> DirectPage | None:
        """Descriptors are no plain values."""
        return None

    def _with_levels(self, data: PageData, place: Place) -> PageData:
        values = data.values
        numbers = values.children if isinstance(values, Packed) else ()
        whole = [each for each in numbers if isinstance(each, FixedWidth) and each.bits == _BITS]
        if len(whole) != len(("position", "size")):
            raise place.corrupt("the descriptors of blobs are not two numbers of 64 bits")
        position, size = (each.data.view(np.uint64) for each in whole)
        marks = np.where(size == 0, position >> _REPETITION_BITS, np.uint64(0))
        if len(marks) > 0 and int(marks.max()) > self.layers.max_visible:
            raise place.corrupt("a definition level that no layer hands out")
        definition = marks.astype(np.uint16) if self.layers.max_visible > 0 else None
        return PageData(values, None, definition, self.layers, data.num_rows).checked(place)
