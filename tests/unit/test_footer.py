"""The last bytes of a file: what is read, and what is refused how."""

from __future__ import annotations

import struct

import pytest

from lance_core.encodings.version import FileVersion
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.file.footer import parse_footer
from lance_core.io.scheduler import Tail

EXAMPLE = bytes.fromhex(
    "1202000000000000 0a03000000000000 2a03000000000000 01000000 02000000 0200 0200 4c414e43"
)
SIZE = 866


def tail(footer: bytes, size: int = SIZE) -> Tail:
    return Tail(memoryview(footer), size - len(footer), size)


def footer(
    positions: tuple[int, int, int] = (530, 778, 810),
    counts: tuple[int, int] = (1, 2),
    version: tuple[int, int] = (2, 2),
) -> bytes:
    return struct.pack("<QQQIIHH4s", *positions, *counts, *version, b"LANC")


def test_the_example_of_the_format_page_is_read() -> None:
    found = parse_footer("f", tail(EXAMPLE))
    assert (found.column_metadata_start, found.column_table_start) == (530, 778)
    assert (found.buffer_table_start, found.num_buffers, found.num_columns) == (810, 1, 2)
    assert found.version is FileVersion.V2_2


@pytest.mark.parametrize(
    ("numbers", "version"),
    [((0, 3), "2.0"), ((2, 0), "2.0"), ((2, 1), "2.1"), ((2, 2), "2.2")],
)
def test_version_numbers_of_2_0_have_two_spellings(numbers: tuple[int, int], version: str) -> None:
    assert parse_footer("f", tail(footer(version=numbers))).version is FileVersion(version)


@pytest.mark.parametrize("numbers", [(0, 0), (0, 1), (0, 2)])
def test_legacy_files_are_refused_with_advice(numbers: tuple[int, int]) -> None:
    # a legacy file has only a 16-byte tail: the 32 bytes before the version mean something else
    legacy = b"\xff" * 32 + struct.pack("<HH4s", *numbers, b"LANC")
    with pytest.raises(UnsupportedFeatureError, match=r"legacy.*write the table anew"):
        parse_footer("f", tail(legacy))


@pytest.mark.parametrize("numbers", [(2, 3), (2, 4), (3, 0), (1, 0)])
def test_other_versions_are_refused(numbers: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedFeatureError, match="f is a Lance file of version"):
        parse_footer("f", tail(footer(version=numbers)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"LANC",
        EXAMPLE[:-1] + b"X",
        EXAMPLE[10:],
        footer(positions=(779, 778, 810)),
        footer(positions=(530, 800, 810)),
        footer(positions=(530, 778, 811)),
        footer(positions=(530, 2**63, 2**63)),
        footer(counts=(1, 2**31)),
        footer(counts=(0, 2)),
    ],
)
def test_a_footer_that_cannot_be_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        parse_footer("f", tail(data))
