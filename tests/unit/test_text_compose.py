"""How the hits of the parts of a text query become those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from lance_core.index.text.text_hits import NO_HITS, TextHits
from lance_core.query.text_compose import best_of, demoted, summed, without


def hits(scores):
    """Return hits in no order of their ids."""
    row_ids = np.array(list(scores), np.uint64)
    return TextHits(row_ids, np.array(list(scores.values()), np.float32))


def by_row(found):
    return dict(zip(found.row_ids.tolist(), found.scores.tolist(), strict=True))


def test_rows_of_all_must_get_the_scores_of_should_too():
    must = [hits({9: 1.0, 2: 2.0, 5: 4.0}), hits({5: 0.5, 9: 0.25})]
    should = [hits({9: 8.0, 2: 16.0}), NO_HITS]
    assert by_row(summed(must, should)) == {5: 4.5, 9: 9.25}


def test_without_must_one_should_is_enough():
    assert by_row(summed([], [hits({3: 1.0}), hits({1: 2.0, 3: 4.0})])) == {1: 2.0, 3: 5.0}


def test_a_must_that_nothing_fits_leaves_nothing():
    assert by_row(summed([hits({1: 1.0}), NO_HITS], [hits({1: 3.0})])) == {}


def test_rows_that_are_not_wanted_go_and_others_keep_their_scores():
    assert by_row(without(hits({4: 1.0, 1: 2.0}), [hits({1: 9.0}), hits({7: 9.0})])) == {4: 1.0}


def test_only_rows_of_the_positive_stay_and_may_fall_below_zero():
    found = demoted(hits({8: 1.0, 3: 4.0}), hits({3: 2.0, 8: 4.0, 5: 1.0}), 0.5)
    assert by_row(found) == {3: 3.0, 8: -1.0}


def test_what_was_demoted_is_not_changed_itself():
    positive = hits({1: 1.0, 2: 2.0})
    demoted(positive, hits({1: 1.0}), 1.0)
    assert by_row(positive) == {1: 1.0, 2: 2.0}


def test_each_row_has_the_best_of_its_scores():
    assert by_row(best_of([hits({1: 1.0, 2: 5.0}), hits({2: 3.0, 1: 2.0})])) == {1: 2.0, 2: 5.0}


@pytest.mark.parametrize("compose", [best_of, lambda parts: summed([], parts)])
def test_of_nothing_comes_nothing(compose):
    assert len(compose([NO_HITS, NO_HITS]).row_ids) == 0
