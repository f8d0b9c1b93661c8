"""Where the rows of direct pages lie: the chunks of many pages found in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from lance_core.encodings.chunk_index import PageChunks
from lance_core.encodings.chunk_table import CHUNK_HEADER_BYTES, parse_chunk_tables
from lance_core.encodings.page import ConstantRow, DirectChunks, RawRows
from lance_core.kernels.bitpacking import BLOCK_ROWS
from lance_core.kernels.direct_rows import CONSTANT, PACKED, RAW

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.mini_block import MiniBlock
    from lance_core.encodings.page import Page
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps

_METADATA_BUFFER, _CHUNK_BUFFER = 0, 1


def describe_direct_pages(
    pages: Sequence[Page],
    numbers: NDArray[np.int64],
    constant_number: Callable[[bytes], int],
    place: Place,
) -> ReadSteps[PageChunks]:
    """Find the chunks of direct pages; reads the chunk tables of those that have one.

    Parameters
    ----------
    pages, numbers
        The pages and their numbers in the column.
    constant_number
        Numbers the rows of constant pages.
    place
        The column, for errors.

    Raises
    ------
    CorruptFileError
        A chunk table contradicts its page.
    """
    one_chunk: list[tuple[int, int, int, int, int]] = []
    chunked: list[tuple[int, Page, DirectChunks]] = []
    for number, page in zip(numbers.tolist(), pages, strict=True):
        direct = page.layout.direct(page)
        if isinstance(direct, ConstantRow):
            constant = constant_number(direct.value)
            one_chunk.append((page.first_row, constant, 0, CONSTANT, number))
        elif isinstance(direct, RawRows):
            size = direct.row_bytes * page.num_rows
            one_chunk.append((page.first_row, direct.offset, size, RAW, number))
        elif isinstance(direct, DirectChunks):
            chunked.append((number, page, direct))
    tables = yield [page.whole(_METADATA_BUFFER) for _, page, _ in chunked]
    found = np.concatenate(
        [np.array(one_chunk, np.int64).reshape(-1, 5).T, _chunks(chunked, tables, place)], axis=1
    )
    if len(one_chunk) > 0 and len(chunked) > 0:
        # by page, not by row: a page may end with a chunk of no rows
        found = np.take(found, np.argsort(found[-1], kind="stable"), axis=1)
    first_rows, offsets, sizes, kinds, owners = found
    return PageChunks(first_rows, offsets, sizes, kinds.astype(np.uint8), owners)


def _chunks(
    pages: Sequence[tuple[int, Page, DirectChunks]], tables: Sequence[memoryview], place: Place
) -> NDArray[np.int64]:
    """Parse chunk tables; shape ``(5, c)``: first row, offset, size, kind and page of each."""
    words = [
        cast("MiniBlock", page.layout).chunk_words(page, table)
        for (_, page, _), table in zip(pages, tables, strict=True)
    ]
    found = parse_chunk_tables(words, place)
    facts = [
        (number, page.first_row, page.buffers[_CHUNK_BUFFER][0], direct.is_packed, direct.row_bytes)
        for number, page, direct in pages
    ]
    numbers, first_rows, starts, is_packed, row_bytes = (
        np.array(facts, np.int64).reshape(-1, 5).T[:, found.page_of]
    )
    sizes = found.num_bytes - CHUNK_HEADER_BYTES
    room = np.where(is_packed, BLOCK_ROWS, sizes // np.maximum(row_bytes, 1))
    if bool((found.num_values > room).any()):
        raise place.corrupt("a chunk is too short for its rows")
    return np.stack(
        [
            first_rows + found.first_values,
            starts + found.first_bytes + CHUNK_HEADER_BYTES,
            sizes,
            np.where(is_packed, PACKED, RAW),
            numbers,
        ]
    )
