"""Filters answered by scalar indices find the rows that a scan of pylance finds."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

import lance_core
from lance_core.query.deadline import NO_DEADLINE
from lance_core.query.row_filter import RowFilter
from lance_core.query.row_masks import passing_addresses
from lance_core.row_address import fragment_of
from tests.scalar_filters import random_filter
from tests.scalar_tables import INDICES, STATES, TESTS, write_table
from tests.soak import many_examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import lance
    from numpy.typing import NDArray

    from lance_core.query.filter_steps import FilterSteps

pytestmark = pytest.mark.interop

KINDS = tuple(dict.fromkeys(kind for _, kind, _ in INDICES))
NUM_ASKED = -(-many_examples() // (2 * len(STATES)))
"""Filters per kind of index and state, of which there are twice as many: with and without ids."""
TRIED_IN_VAIN = 100


class Pair:
    """A table, opened by pylance and by us."""

    def __init__(self, theirs: lance.LanceDataset) -> None:
        self.theirs = theirs
        self.ours = lance_core.open_dataset(str(theirs.uri))

    def filter(self, text: str, *, covered_only: bool = False) -> RowFilter:
        return RowFilter(
            self.ours.session, self.ours.snapshot, text, NO_DEADLINE, covered_only=covered_only
        )

    def find(self, text: str, *, covered_only: bool = False) -> NDArray[np.uint64]:
        return self.found(self.filter(text, covered_only=covered_only))

    def found(self, row_filter: RowFilter) -> NDArray[np.uint64]:
        fragments = list(self.ours.snapshot.fragments_by_id)
        return passing_addresses(row_filter.passing(fragments, NO_DEADLINE))

    def steps(self, text: str) -> FilterSteps:
        return self.filter(text).steps(NO_DEADLINE)

    def scanned(self, text: str) -> NDArray[np.uint64]:
        scanner = self.theirs.scanner(filter=text, columns=["_rowaddr"], use_scalar_index=False)
        return np.sort(scanner.to_table()["_rowaddr"].to_numpy())

    def judged(self, text: str) -> NDArray[np.uint64]:
        scanned = self.ours.scan(["_rowaddr"], filter=text, use_index=False).read_all()
        return np.sort(scanned["_rowaddr"].to_numpy())

    def have_nulls(self, addresses: NDArray[np.uint64], text: str) -> bool:
        used = {name for name, _, _ in INDICES if name in text} | {"free"}
        nulls = self.scanned(" OR ".join(f"{name} IS NULL" for name in sorted(used)))
        return bool(np.isin(addresses, nulls).all())


@pytest.fixture(scope="module", params=["addresses", "stable ids"])
def open_pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Pair]:
    """Return a function from a state to a table in it, each of which is written once."""
    folder = tmp_path_factory.mktemp("indexed")
    written: dict[str, Pair] = {}

    def pair(state: str) -> Pair:
        if state not in written:
            path: Path = folder / f"{state}.lance"
            written[state] = Pair(write_table(path, state, stable=request.param == "stable ids"))
        return written[state]

    return pair


@pytest.mark.parametrize("state", STATES)
def test_filters_find_what_a_scan_finds(open_pair, state):
    pair = open_pair(state)
    negated = [f"NOT ({text})" for text in TESTS[STATES.index(state) % 2 :: 2]]
    for text in (*TESTS, *negated):
        expected = pair.scanned(text)
        assert np.array_equal(pair.find(text), expected), text
        fragments = list(pair.ours.snapshot.fragments_by_id)
        assert pair.filter(text).count(fragments, NO_DEADLINE) == len(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", STATES)
def test_random_filters_find_through_an_index_what_a_scan_finds(
    open_pair, record_property, state, kind
):
    pair = open_pair(state)
    random = Random(f"{state} {kind}")
    num_asked = 0
    for tried in range(2 * NUM_ASKED):
        text = random_filter(random, kind)
        row_filter = pair.filter(text)
        num_asked += any(kind in step.kinds for step in row_filter.steps(NO_DEADLINE).lookups)
        found, expected = pair.found(row_filter), pair.scanned(text)
        if not np.array_equal(found, expected):
            # pylance takes NOT (x IN (1) AND x IN (2)) for true where x is null, and the like
            assert pair.have_nulls(np.setxor1d(found, expected), text), text
            assert np.array_equal(found, pair.judged(text)), text
        if num_asked == NUM_ASKED or (num_asked == 0 and tried == TRIED_IN_VAIN):
            break  # compacted tables have zones of no fragment
    record_property("asked", num_asked)
    assert num_asked > 0 or state != "fresh"


@pytest.mark.parametrize("state", STATES)
def test_rows_come_in_the_order_they_are_stored_in(open_pair, state):
    pair = open_pair(state)
    for text in ("small = 3", "id < 400 OR zoned = 100", "NOT ok AND free < 4", "free = 2"):
        found = pair.ours.scan(["id"], filter=text).read_all()["id"]
        scanner = pair.theirs.scanner(columns=["id"], filter=text, use_scalar_index=False)
        assert found.equals(scanner.to_table()["id"]), text
        limited = pair.ours.scan(["id"], filter=text, limit=7, offset=3).read_all()["id"]
        assert limited.to_pylist() == found.to_pylist()[3:10]


@pytest.mark.parametrize("state", ["fresh", "compacted", "deferred", "several segments"])
def test_an_index_is_used_wherever_pylance_uses_it(open_pair, state):
    pair = open_pair(state)
    num_used = 0
    for text in (*TESTS, *(f"NOT ({text})" for text in TESTS)):
        if "ScalarIndexQuery" in pair.theirs.scanner(filter=text).explain_plan():
            num_used += 1
            assert pair.steps(text).lookups, text
    assert num_used > 40


def test_every_kind_of_index_is_asked(open_pair):
    pair = open_pair("fresh")
    asked = {kind for text in TESTS for step in pair.steps(text).lookups for kind in step.kinds}
    assert asked == {kind for _, kind, _ in INDICES}


@pytest.mark.parametrize("state", ["appended", "several segments", "everything"])
def test_rows_without_index_are_scanned(open_pair, state):
    pair = open_pair(state)
    steps = pair.steps("id < 1000000")
    covered = sum(step.num_fragments for step in steps.lookups)
    assert steps.scan is not None
    assert covered + steps.scan.num_fragments == len(pair.ours.snapshot.fragments)
    found = set(fragment_of(pair.find("id < 1000000")).tolist())
    assert found == set(pair.ours.snapshot.fragments_by_id)


@pytest.mark.parametrize(
    "text",
    [
        "id < 1000000",
        "small = 3",
        "small = 3 AND free < 3",
        "small <> 3 OR ok",
        "free = 2",
        "free = 2 OR small = 3",
        "zoned < 40 OR name LIKE 'am%'",
    ],
)
@pytest.mark.parametrize("state", ["fresh", "appended", "updated", "several segments"])
def test_a_fast_search_leaves_out_rows_without_index(open_pair, state, text):
    pair = open_pair(state)
    scanner = pair.theirs.scanner(filter=text, columns=["_rowaddr"], fast_search=True)
    expected = np.sort(scanner.to_table()["_rowaddr"].to_numpy())
    assert np.array_equal(pair.find(text, covered_only=True), expected)
