"""Columns whose pages are encoded in different ways, met one page at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from threading import Barrier
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import UnsupportedFeatureError
from lance_core.file.reader import LanceFileReader
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from tests.lance_columns import VERSIONS, lance_file, open_bytes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

PAGE = 500


def mixed() -> pa.Array:
    """Pages of packed numbers, numbers with nulls, one number, packed numbers, another number."""
    rng = np.random.default_rng(5)
    nullable = [None if i % 7 == 0 else i for i in range(PAGE)]
    return pa.concat_arrays(
        [
            pa.array(rng.integers(0, 900, PAGE)),
            pa.array(nullable, pa.int64()),
            pa.array([3] * PAGE),
            pa.array(rng.integers(0, 2**40, PAGE)),
            pa.array([-8] * PAGE),
        ]
    )


COLUMN = mixed()


@pytest.fixture(params=VERSIONS)
def data(request: pytest.FixtureRequest) -> bytes:
    return lance_file(COLUMN, request.param, page_rows=PAGE)


def check_page(reader: LanceFileReader, page: int) -> None:
    targets = [reader.target("c")]
    rows = np.array([page * PAGE + 400, page * PAGE, page * PAGE + 400])
    assert reader.take(targets, rows)[0].equals(COLUMN.take(pa.array(rows)))
    start, stop = page * PAGE + 100, page * PAGE + 300
    assert reader.read(targets, [(start, stop)])[0].equals(COLUMN.slice(start, stop - start))


@pytest.mark.parametrize("is_mapped", [True, False], ids=["mapped", "fetched"])
def test_pages_read_equal_in_whatever_order_they_are_met(
    data: bytes, is_mapped: bool, tmp_path: Path
) -> None:
    (tmp_path / "file.lance").write_bytes(data)
    mapped = RangeScheduler(MappedStore(tmp_path))
    for order in list(permutations(range(5)))[::7]:
        reader = LanceFileReader.open(mapped, "file.lance") if is_mapped else open_bytes(data)
        for page in order:
            check_page(reader, page)
        assert reader.read([reader.target("c")], [(0, 5 * PAGE)])[0].equals(COLUMN)


def test_ranges_over_pages_of_all_kinds_read_equal(data: bytes) -> None:
    reader = open_bytes(data)
    check_page(reader, 0)
    ranges = [(PAGE * 3 - 5, PAGE * 5), (10, 10), (400, PAGE * 2 + 1)]
    wanted = pa.concat_arrays([COLUMN.slice(start, stop - start) for start, stop in ranges])
    assert reader.read([reader.target("c")], ranges)[0].equals(wanted)


def test_threads_that_meet_different_pages_together_agree(data: bytes) -> None:
    with ThreadPoolExecutor(5) as pool:
        for _ in range(20):
            reader = open_bytes(data)
            start = Barrier(5)

            def work(page: int, reader: LanceFileReader = reader, start: Barrier = start) -> None:
                start.wait()
                check_page(reader, page)

            list(pool.map(work, range(5)))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_page_that_cannot_be_read_leaves_the_others_readable(version: str) -> None:
    packed = COLUMN.slice(3 * PAGE, PAGE)
    column = pa.concat_arrays([packed, COLUMN.slice(0, PAGE), packed, packed])
    known = b"lance.encodings21.PageLayout"
    head, found, tail = lance_file(column, version, page_rows=PAGE).rpartition(known)
    assert found == known
    reader = open_bytes(head + known[:-1] + b"s" + tail)
    targets = [reader.target("c")]
    assert reader.read(targets, [(0, 3 * PAGE)])[0].equals(column.slice(0, 3 * PAGE))
    for ranges in ([(3 * PAGE, 3 * PAGE + 1)], [(0, 4 * PAGE)]):
        with pytest.raises(UnsupportedFeatureError, match="PageLayous"):
            reader.read(targets, ranges)
    assert reader.take(targets, np.array([2 * PAGE]))[0][0] == packed[0]
