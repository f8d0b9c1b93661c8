"""What is kept of queries that were answered before stays small."""

from __future__ import annotations

import pytest

from lance_core.query.prepared import PreparedQueries, is_long


def test_what_was_kept_is_found_under_its_parameters():
    kept: PreparedQueries[str] = PreparedQueries()
    kept.keep(("id", 3), "prepared", "id = 3")
    kept.keep(("id", None), "unfiltered", "")
    assert (kept.get(("id", 3)), kept.get(("id", None))) == ("prepared", "unfiltered")
    assert kept.get(("id", 4)) is None


def test_long_filters_are_not_kept():
    kept: PreparedQueries[int] = PreparedQueries()
    long = "x" * 5000
    assert is_long(long)
    assert not is_long("x" * 4096)
    assert not is_long(None)
    kept.keep(long, 1, long)
    assert (len(kept), kept.get(long)) == (0, None)


@pytest.mark.parametrize("value", [list(range(300)), "x" * 5000, b"x" * 5000], ids=type)
def test_long_parameters_are_not_kept(value):
    kept: PreparedQueries[int] = PreparedQueries()
    kept.keep("long", 1, "id IN $ids", {"ids": value})
    kept.keep("short", 1, "id IN $ids", {"ids": value[:3], "other": 3, "none": None})
    assert (kept.get("long"), kept.get("short")) == (None, 1)


@pytest.mark.parametrize("text", ["t < now()", "d = CURRENT_DATE", "random() < 0.5"])
def test_filters_that_depend_on_the_time_are_not_kept(text):
    kept: PreparedQueries[int] = PreparedQueries()
    kept.keep(text, 1, text)
    assert kept.get(text) is None
    kept.keep("known", 1, "known = 3")
    assert kept.get("known") == 1


def test_neither_many_queries_nor_much_text_is_kept():
    kept: PreparedQueries[int] = PreparedQueries()
    for number in range(1000):
        kept.keep(number, number, "")
        assert len(kept) <= 256
        assert kept.get(number) == number
    for number in range(1000):
        kept.keep(number, number, "x" * 4000)
        assert len(kept) <= 256
        assert kept.get(number) == number
    assert len(kept) <= 16
