"""Running the parts of a text query: which are asked, for how many rows, and what comes of them."""

from __future__ import annotations

import numpy as np

from lance_core.index.text.queries import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery
from lance_core.index.text.text_hits import TextHits
from lance_core.query.deadline import NO_DEADLINE
from lance_core.query.measure import UNMEASURED
from lance_core.query.plan import TextPlan
from lance_core.query.text_plan import text_leaves
from lance_core.query.text_search import TextSearch


def word(number):
    return MatchQuery(str(number), "t")


class Rows:
    """Finds for a number all rows below 60 that it divides, each with the number as its score."""

    def __init__(self):
        self.asked = []

    def find(self, leaf, k):
        number = int(leaf.query.text)
        self.asked.append((number, k))
        rows = np.arange(0, 60, number, dtype=np.uint64)[:k]
        return TextHits(rows, np.full(len(rows), number, np.float32))


def run(query, k=None, default_columns=()):
    leaves = text_leaves(query, default_columns)
    plan = TextPlan(query, leaves, default_columns, (), (), 0, k, ())
    rows = Rows()
    search = TextSearch(plan, rows.find, deadline=NO_DEADLINE, measures=UNMEASURED)
    hits = search.run()
    return dict(zip(hits.row_ids.tolist(), hits.scores.tolist(), strict=True)), rows.asked


def test_any_number_of_parts_is_added_up():
    numbers = range(1, 31)
    found, asked = run(BooleanQuery(should=tuple(map(word, numbers))))
    expected = {row: sum(n for n in numbers if row % n == 0) for row in range(60)}
    assert found == expected
    assert [number for number, _ in asked] == list(numbers)


def test_all_of_many_parts_are_needed_and_none_of_others():
    query = BooleanQuery(
        must=tuple(map(word, (1, 2, 3))),
        should=tuple(map(word, range(4, 24))),
        must_not=tuple(map(word, (7, 11, 13))),
    )
    found, _ = run(query)
    expected = {
        row: 6 + sum(n for n in range(4, 24) if row % n == 0)
        for row in range(0, 60, 6)
        if all(row % n for n in (7, 11, 13))
    }
    assert found == expected


def test_the_best_of_many_parts_counts():
    found, _ = run(MultiMatchQuery(tuple(map(word, range(1, 20)))))
    assert found == {row: max(n for n in range(1, 20) if row % n == 0) for row in range(60)}


def test_a_part_that_stands_twice_is_asked_once():
    query = BooleanQuery(must=(word(2),), should=(BoostQuery(word(2), word(3)), word(5)))
    _, asked = run(query)
    assert asked == [(2, None), (3, None), (5, None)]


def test_no_more_rows_are_asked_for_than_wanted_where_parts_do_not_add_up():
    assert run(word(4), 3)[1] == [(4, 3)]
    assert run(BooleanQuery(must=(word(4),)), 3)[1] == [(4, 3)]
    assert run(MultiMatchQuery((word(4), word(6))), 3)[1] == [(4, 3), (6, 3)]
    assert run(BooleanQuery(should=(word(4), word(6))), 3)[1] == [(4, None), (6, None)]


def test_a_part_without_a_column_has_the_best_of_all_columns():
    query = MatchQuery("7")
    found, asked = run(query, 2, ("t", "u"))
    assert found == {0: 7.0, 7: 7.0}
    assert asked == [(7, 2), (7, 2)]
