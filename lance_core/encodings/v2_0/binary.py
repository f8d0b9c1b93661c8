"""Byte strings: end offsets beside the bytes; FSST over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.fsst import SymbolTable, expanded
from lance_core.encodings.v2_0.ends import read_extents
from lance_core.encodings.values import Variable, with_validity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.encodings.page import Page, RawRows
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.flat import FlatArray
    from lance_core.encodings.v2_0.node import ArrayNode
    from lance_core.encodings.values import Values

_MAX_BYTES = 1 << 48


@dataclass(frozen=True, slots=True)
class BinaryArray:
    """``indices`` are end offsets into ``data``, which is flat with 8 bits."""

    indices: ArrayNode
    data: FlatArray
    null_adjustment: int

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check the offsets; the bytes are checked against them while reading."""
        self.indices.check(page, num_values, place)
        self.data.check(page, 0, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Values]:
        """Read the offsets of the pieces, then the bytes they delimit."""
        is_raw = self.data.codec is None
        limit = page.buffers[self.data.buffer][1] if is_raw else _MAX_BYTES
        extents = yield from read_extents(
            self.indices, self.null_adjustment, limit, page, pieces, place
        )
        data = yield from self.data.read(page, extents.spans, place)
        offsets = np.zeros(len(extents.starts) + 1, np.int64)
        np.cumsum(extents.ends - extents.starts, out=offsets[1:])
        return with_validity(Variable(offsets, data.data), extents.validity)

    def raw(self, page: Page) -> RawRows | None:
        """Strings have no one width."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class FsstArray:
    """Strings of ``binary`` expanded by a symbol table."""

    binary: ArrayNode
    table: SymbolTable

    def check(self, page: Page, num_values: int, place: Place) -> None:
        """Check the strings."""
        self.binary.check(page, num_values, place)

    def read(
        self, page: Page, pieces: Sequence[tuple[int, int]], place: Place
    ) -> ReadSteps[Values]:
        """Read and expand the strings."""
        values = yield from self.binary.read(page, pieces, place)
        return expanded(values, self.table, place)

    def raw(self, page: Page) -> RawRows | None:
        """Strings have no one width."""
        return None
