"""What text queries must hold whatever is asked, over a table with indexed rows and others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core import open_dataset, write_dataset
from lance_core.index.text.queries import BooleanQuery, BoostQuery, MatchQuery, PhraseQuery

WORDS = [f"w{number}" for number in range(12)]

some_words = st.lists(st.sampled_from([*WORDS, "none"]), min_size=1, max_size=4).map(" ".join)
columns = st.sampled_from(["t", "u"])
matches = st.builds(
    MatchQuery,
    some_words,
    columns,
    boost=st.sampled_from([1.0, 0.5, 3.0]),
    operator=st.sampled_from(["or", "and"]),
)
phrases = st.builds(PhraseQuery, some_words, st.just("t"), slop=st.integers(0, 2))
leaves = st.one_of(matches, phrases)
queries = st.one_of(
    leaves,
    st.builds(BoostQuery, leaves, leaves),
    st.builds(lambda one, other: BooleanQuery(must=(one,), should=(other,)), leaves, leaves),
)
filters = st.sampled_from([None, "id % 3 = 0", "id > 170"])


def rows(first, last):
    rng = np.random.default_rng(first)
    weights = 1 / np.arange(1, 13)

    def text():
        size = rng.integers(0, 9)
        return " ".join(rng.choice(WORDS, size=size, p=weights / weights.sum()))

    ids = range(first, last)
    return pa.table({"id": ids, "t": [text() for _ in ids], "u": [text() for _ in ids]})


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """150 indexed rows, some of them deleted, and 50 that came later; only ``t`` has an index."""
    path = str(tmp_path_factory.mktemp("laws") / "table.lance")
    written = write_dataset(path, rows(0, 150))
    written = written.create_index("t", "INVERTED", with_position=True, remove_stop_words=False)
    written = written.delete("id % 10 = 7")
    return written.append(rows(150, 200))


def scores(dataset, query, k=None, **options):
    found = dataset.search_text(query, k, columns=["id"], **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@given(query=queries, unwanted=leaves, filter_text=filters)
def test_what_must_not_be_there_adds_no_rows_and_changes_no_scores(
    dataset, query, unwanted, filter_text
):
    before = scores(dataset, query, filter=filter_text)
    without = BooleanQuery(must=(query,), must_not=(unwanted,))
    after = scores(dataset, without, filter=filter_text)
    gone = scores(dataset, unwanted, filter=filter_text)
    assert after == {row: score for row, score in before.items() if row not in gone}


@given(text=some_words, column=columns, low=st.floats(0, 8, width=16), more=st.floats(0, 8))
def test_scores_grow_with_the_boost(dataset, text, column, low, more):
    lower = scores(dataset, MatchQuery(text, column, boost=low))
    higher = scores(dataset, MatchQuery(text, column, boost=low + more))
    assert lower.keys() == higher.keys()
    assert all(higher[row] >= lower[row] for row in lower)


@given(query=matches)
def test_no_fuzziness_is_an_exact_match(dataset, query):
    vague = MatchQuery(query.text, query.column, query.boost, 0, operator=query.operator)
    unsaid = MatchQuery(query.text, query.column, query.boost, None, operator=query.operator)
    assert scores(dataset, query) == scores(dataset, vague) == scores(dataset, unsaid)


@given(query=matches)
def test_fuzziness_loses_no_row(dataset, query):
    vague = MatchQuery(query.text, query.column, fuzziness=1, operator=query.operator)
    assert scores(dataset, query).keys() <= scores(dataset, vague).keys()


@given(query=queries, filter_text=filters, k=st.integers(1, 30), offset=st.integers(0, 30))
def test_the_best_rows_are_the_first_of_all(dataset, query, filter_text, k, offset):
    every = dataset.search_text(query, None, columns=["id"], filter=filter_text)
    some = dataset.search_text(query, k, columns=["id"], filter=filter_text, offset=offset)
    expected = every["_score"].to_numpy()[offset : offset + k]
    np.testing.assert_array_equal(some["_score"].to_numpy(), expected)
    assert (np.diff(every["_score"].to_numpy()) <= 0).all()
    assert len(set(every["id"].to_pylist())) == every.num_rows


@given(query=queries, filter_text=filters)
def test_a_prefilter_keeps_indexed_rows_that_pass_as_they_are(dataset, query, filter_text):
    every = scores(dataset, query, fast_search=True)
    passing = set(dataset.scan(["id"], filter=filter_text).read_all()["id"].to_pylist())
    kept = scores(dataset, query, fast_search=True, filter=filter_text)
    assert kept == {row: score for row, score in every.items() if row in passing}


@settings(max_examples=10)
@given(query=queries, versions=st.permutations([2, 3, 4]))
def test_versions_that_share_a_cache_are_never_mixed(dataset, query, versions):
    alone = {
        version: scores(open_dataset(dataset.uri, version=version), query) for version in versions
    }
    together = {version: scores(dataset.checkout(version), query) for version in versions}
    assert together == alone
    assert all(row % 10 != 7 or row >= 150 for row in together[3])
