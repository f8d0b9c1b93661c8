"""Whatever the store, the scheduler gives the bytes asked for and counts what was delivered."""

from __future__ import annotations

from hypothesis import given, strategies as st

from lance_core.io.counting_store import CountingStore
from lance_core.io.memory_store import MemoryStore
from lance_core.io.metering import metered
from lance_core.io.scheduler import ByteRange, RangeScheduler

PATHS = ("a", "data/b", "c")
SIZE = 500
CONTENT = {
    path: bytes((number * 7 + byte) % 251 for byte in range(SIZE))
    for number, path in enumerate(PATHS)
}

bounds = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(
    lambda pair: (min(pair), max(pair))
)
byte_ranges = st.lists(
    st.builds(lambda path, pair: ByteRange(path, *pair), st.sampled_from(PATHS), bounds),
    max_size=12,
)


def filled_store() -> MemoryStore:
    store = MemoryStore()
    for path, content in CONTENT.items():
        store.put(path, content)
    return store


MAPPING = RangeScheduler(filled_store())


def expected(ranges: list[ByteRange]) -> list[bytes]:
    return [CONTENT[path][start:end] for path, start, end in ranges]


@given(ranges=byte_ranges, gap=st.integers(0, 100))
def test_a_store_that_waits_gives_every_range_in_its_place(
    ranges: list[ByteRange], gap: int
) -> None:
    scheduler = RangeScheduler(CountingStore(filled_store(), coalesce_gap=gap), max_concurrency=2)
    assert [bytes(view) for view in scheduler.read_many(ranges)] == expected(ranges)


@given(ranges=byte_ranges)
def test_a_mapping_store_gives_every_range_in_its_place(ranges: list[ByteRange]) -> None:
    assert [bytes(view) for view in MAPPING.read_many(ranges)] == expected(ranges)


@given(pairs=st.lists(bounds, max_size=12), gap=st.integers(0, 100))
def test_reading_one_object_is_reading_many_of_one_path(
    pairs: list[tuple[int, int]], gap: int
) -> None:
    waiting = RangeScheduler(CountingStore(filled_store(), coalesce_gap=gap), max_concurrency=2)
    wanted = [CONTENT["a"][start:end] for start, end in pairs]
    assert [bytes(view) for view in waiting.read("a", pairs)] == wanted
    assert [bytes(view) for view in MAPPING.read("a", pairs)] == wanted


@given(ranges=byte_ranges, gap=st.integers(0, 100))
def test_the_meter_agrees_with_the_store(ranges: list[ByteRange], gap: int) -> None:
    store = CountingStore(filled_store(), coalesce_gap=gap)
    with metered() as meter:
        RangeScheduler(store, max_concurrency=2).read_many(ranges)
    assert (meter.bytes_read, meter.store_requests) == (store.bytes_read, store.num_requests)


@given(ranges=byte_ranges)
def test_without_gaps_only_bytes_asked_for_are_read_and_each_once(ranges: list[ByteRange]) -> None:
    store = CountingStore(filled_store())
    RangeScheduler(store, max_concurrency=2).read_many(ranges)
    wanted = {(path, byte) for path, start, end in ranges for byte in range(start, end)}
    assert store.bytes_read == len(wanted)


@given(ranges=byte_ranges)
def test_a_mapping_store_counts_every_slice(ranges: list[ByteRange]) -> None:
    with metered() as meter:
        MAPPING.read_many(ranges)
    assert meter.bytes_read == sum(end - start for _, start, end in ranges)
    assert meter.store_requests == len(ranges)


@given(length=st.integers(0, 2 * SIZE), size_is_known=st.booleans(), maps=st.booleans())
def test_a_tail_is_the_end_of_the_object(length: int, size_is_known: bool, maps: bool) -> None:
    store = filled_store()
    scheduler = RangeScheduler(store if maps else CountingStore(store))
    view, start, size = scheduler.tail("a", SIZE if size_is_known else None, length)
    assert size == SIZE
    assert start == max(0, SIZE - length)
    assert bytes(view) == CONTENT["a"][start:]
