"""Lists in many pages: rows of all pages come from one decoding, as from one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 3_000


def lists(generator: np.random.Generator) -> pa.Array:
    sizes = generator.integers(0, 5, ROWS)
    sizes[generator.integers(0, ROWS, 5)] = 3_000  # rows that go on over several chunks
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets, mask=np.append(generator.random(ROWS) < 0.1, False)),
        pa.array(generator.integers(0, 1 << 40, int(offsets[-1]))),
    )


def lists_of_lists(generator: np.random.Generator) -> pa.Array:
    inner = lists(generator)
    bounds = np.sort(np.append(generator.integers(0, ROWS, ROWS - 1), [0, ROWS]))
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), inner)


def structs_of_lists(generator: np.random.Generator) -> pa.Array:
    parts = [lists(generator), pa.array(generator.standard_normal(ROWS))]
    return pa.StructArray.from_arrays(
        parts, ["a", "b"], mask=pa.array(generator.random(ROWS) < 0.1)
    )


def tags(generator: np.random.Generator) -> pa.Array:
    """Few distinct texts, some of them null: every page has a dictionary of its own."""
    numbers = lists(generator)
    words = pa.array([f"word {number}" for number in range(60)])
    chosen = np.sort(generator.integers(0, 60, len(numbers.values)))
    texts = words.take(pa.array(chosen, mask=generator.random(len(chosen)) < 0.1))
    return pa.ListArray.from_arrays(numbers.offsets, texts)


def sentences(generator: np.random.Generator) -> pa.Array:
    """Distinct texts of common words: every page has a symbol table of its own."""
    numbers = lists(generator)
    texts = [f"the number of item {n} is {n * n}" for n in range(len(numbers.values))]
    return pa.ListArray.from_arrays(numbers.offsets, pa.array(texts))


@pytest.fixture(params=[lists, lists_of_lists, structs_of_lists, tags, sentences])
def rows(request: pytest.FixtureRequest) -> pa.Array:
    make: Callable[[np.random.Generator], pa.Array] = request.param
    return make(np.random.default_rng(0))


@pytest.fixture
def reader(rows: pa.Array) -> LanceFileReader:
    store = MemoryStore()
    schema = pa.schema([pa.field("x", rows.type)])
    with LanceFileWriter(store, "a.lance", schema, max_page_bytes=8_000) as writer:
        writer.write_batch(pa.record_batch([rows], schema=schema))
    return LanceFileReader.open(RangeScheduler(store), "a.lance")


def test_scattered_rows_of_all_pages_are_those_written(
    rows: pa.Array, reader: LanceFileReader
) -> None:
    generator = np.random.default_rng(1)
    for count in (1, 7, 300, ROWS):
        wanted = generator.integers(0, ROWS, count)
        (array,) = reader.take([reader.target("x")], wanted)
        assert array.equals(rows.take(pa.array(wanted)))


def test_ranges_over_pages_are_the_rows_written(rows: pa.Array, reader: LanceFileReader) -> None:
    generator = np.random.default_rng(2)
    for _ in range(30):
        cuts = np.sort(generator.integers(0, ROWS + 1, 6)).reshape(-1, 2).tolist()
        (array,) = reader.read([reader.target("x")], [(a, b) for a, b in cuts])
        assert array.equals(pa.concat_arrays([rows.slice(a, b - a) for a, b in cuts]))


def test_rows_of_many_pages_come_in_one_piece(rows: pa.Array, reader: LanceFileReader) -> None:
    assert len(reader.metadata.column(0).pages) > 10
    (array,) = reader.read([reader.target("x")], [(0, ROWS)])
    assert array.equals(rows)
