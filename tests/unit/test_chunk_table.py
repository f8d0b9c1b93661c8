"""Chunk words of a mini-block page."""

from __future__ import annotations

import numpy as np
import pytest

from lance_core.encodings.chunk_table import ChunkWords, parse_chunk_table, parse_chunk_tables
from lance_core.encodings.place import Place
from lance_core.errors import CorruptFileError

PLACE = Place("file.lance", "c")


def words(*chunks: tuple[int, int], kind: str = "<u4") -> memoryview:
    """Encode chunks of (log2 of values, bytes)."""
    return memoryview(
        np.array([(size // 8 - 1) << 4 | log for log, size in chunks], kind).tobytes()
    )


def test_values_and_bytes_are_running_sums() -> None:
    table = parse_chunk_table(
        ChunkWords(words((10, 4240), (10, 4240), (0, 800)), 4, 2100, 9280), PLACE
    )
    assert table.first_values.tolist() == [0, 1024, 2048, 2100]
    assert table.first_bytes.tolist() == [0, 4240, 8480, 9280]


def test_the_example_of_the_format_page_holds() -> None:
    table = parse_chunk_table(ChunkWords(memoryview(b"\x1a\x21\x00\x00"), 2, 1025, 4240 + 8), PLACE)
    assert table.first_values.tolist() == [0, 1024, 1025]
    assert table.first_bytes.tolist() == [0, 4240, 4248]


def test_a_page_without_values_has_no_chunks() -> None:
    assert parse_chunk_table(ChunkWords(memoryview(b""), 4, 0, 0), PLACE).num_chunks == 0


@pytest.mark.parametrize(
    ("buffer", "word_bytes", "num_values", "chunk_bytes"),
    [
        (words((10, 4240), (0, 800)), 4, 1000, 5040),
        (words((10, 4240), (0, 800)), 4, 1100, 5041),
        (words((0, 800))[:3], 4, 10, 800),
        (memoryview(b""), 4, 1, 0),
        (words((0, 800)), 4, 2**40, 800),
    ],
    ids=["fewer values", "other bytes", "half a word", "no chunk", "absurd count"],
)
def test_words_that_do_not_add_up_are_corrupt(
    buffer: memoryview, word_bytes: int, num_values: int, chunk_bytes: int
) -> None:
    with pytest.raises(CorruptFileError):
        parse_chunk_table(ChunkWords(buffer, word_bytes, num_values, chunk_bytes), PLACE)


def test_pages_are_parsed_together_as_they_are_alone() -> None:
    pages = [
        ChunkWords(words((10, 4240), (0, 800), kind="<u2"), 2, 1100, 5040),
        ChunkWords(memoryview(b""), 4, 0, 0),
        ChunkWords(words((3, 16), (2, 8), (0, 64)), 4, 15, 88),
    ]
    rows = parse_chunk_tables(pages, PLACE)
    assert rows.page_of.tolist() == [0, 0, 2, 2, 2]
    assert rows.first_values.tolist() == [0, 1024, 0, 8, 12]
    assert rows.num_values.tolist() == [1024, 76, 8, 4, 3]
    assert rows.first_bytes.tolist() == [0, 4240, 0, 16, 24]
    assert rows.num_bytes.tolist() == [4240, 800, 16, 8, 64]


def test_one_page_that_does_not_add_up_spoils_all() -> None:
    good = ChunkWords(words((0, 800)), 4, 10, 800)
    bad = ChunkWords(words((0, 800)), 4, 11, 808)
    with pytest.raises(CorruptFileError, match="11 values in 808 bytes"):
        parse_chunk_tables([good, bad, good], PLACE)
