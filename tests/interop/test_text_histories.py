"""Text queries over tables with a past: what pylance finds, and with which scores."""

from __future__ import annotations

import lance
import lance.query as lance_query
import numpy as np
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
)
from tests.text_indices import PLAIN

pytestmark = pytest.mark.interop

WORDS = np.array([f"w{number}" for number in range(80)])
WEIGHTS = (1 / np.arange(1, 81)) / (1 / np.arange(1, 81)).sum()

AND = lance_query.FullTextOperator.AND
MUST, SHOULD, MUST_NOT = (
    lance_query.Occur.MUST,
    lance_query.Occur.SHOULD,
    lance_query.Occur.MUST_NOT,
)


def rows(first, last, seed):
    rng = np.random.default_rng(seed)

    def text():
        if rng.random() < 0.05:
            return None
        return " ".join(rng.choice(WORDS, size=rng.integers(0, 30), p=WEIGHTS))

    ids = range(first, last)
    columns = {"id": ids, "t": [text() for _ in ids], "u": [text() for _ in ids]}
    lists = [None if each % 19 == 4 else [text(), text()] for each in ids]
    return pa.table(columns).append_column("l", pa.array(lists, pa.list_(pa.string())))


def write(path, *, stable=False, block_size=128):
    dataset = lance.write_dataset(
        rows(0, 400, 1), path, max_rows_per_file=150, enable_stable_row_ids=stable
    )
    for column in ("t", "u", "l"):
        dataset.create_scalar_index(
            column, "INVERTED", with_position=True, block_size=block_size, **PLAIN
        )
    return dataset


def append(dataset, seed):
    last = dataset.count_rows()
    return lance.write_dataset(rows(last, last + 90, seed), dataset.uri, mode="append")


def just_indexed(path):
    write(path)


def large_blocks(path):
    append(write(path, block_size=256), 2)


def several_segments(path):
    dataset = append(write(path), 2)
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset = append(dataset, 3)
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    append(dataset, 4)


def merged_segments(path):
    dataset = append(write(path), 2)
    dataset.delete("id % 6 = 5")
    dataset.optimize.optimize_indices()


def updated(path):
    write(path).update({"t": "'w1 w2 w7'"}, where="id % 23 = 3")


def compacted(path):
    dataset = append(write(path), 2)
    dataset.delete("id % 6 = 5")
    dataset.optimize.compact_files(target_rows_per_fragment=300)


def compacted_later(path):
    dataset = append(write(path), 2)
    dataset.delete("id % 6 = 5")
    dataset.optimize.compact_files(target_rows_per_fragment=300, defer_index_remap=True)
    append(lance.dataset(path), 3)


def stable_row_ids(path):
    dataset = append(write(path, stable=True), 2)
    dataset.update({"t": "'w1 w2 w7'"}, where="id % 23 = 3")
    dataset.delete("id % 6 = 5")


HISTORIES = [
    just_indexed,
    large_blocks,
    several_segments,
    merged_segments,
    updated,
    compacted,
    compacted_later,
    stable_row_ids,
]


@pytest.fixture(scope="module", params=HISTORIES, ids=lambda history: history.__name__)
def path(request, tmp_path_factory):
    place = str(tmp_path_factory.mktemp("histories") / "table.lance")
    request.param(place)
    return place


def both(text, column="t", **parts):
    """Return a match query of ours and of pylance."""
    theirs = {**parts}
    if parts.get("operator") == "and":
        theirs["operator"] = AND
    return MatchQuery(text, column, **parts), lance_query.MatchQuery(text, column, **theirs)


def boolean_queries():
    must, should, not_wanted = both("w1"), both("w4 w30", "u"), both("w2", "l", operator="and")
    ours = BooleanQuery((must[0],), (should[0],), (not_wanted[0],))
    parts = [(MUST, must[1]), (SHOULD, should[1]), (MUST_NOT, not_wanted[1])]
    return ours, lance_query.BooleanQuery(parts)


def boost_queries():
    positive, negative = both("w3 w5"), both("w1", "u", boost=1.5)
    ours = BoostQuery(positive[0], negative[0], 0.4)
    return ours, lance_query.BoostQuery(positive[1], negative[1], negative_boost=0.4)


def multi_match_queries():
    ours = MultiMatchQuery((MatchQuery("w6 w2", "t", 1.0), MatchQuery("w6 w2", "l", 2.0)))
    return ours, lance_query.MultiMatchQuery("w6 w2", ["t", "l"], boosts=[1.0, 2.0])


QUERIES = {
    "one word": both("w11"),
    "some words": both("w3 w40 w3 w17"),
    "all words": both("w1 w3", operator="and", boost=2.5),
    "lists": both("w2 w60", "l"),
    "phrase": (PhraseQuery("w1 w2", "t"), lance_query.PhraseQuery("w1 w2", "t")),
    "loose phrase": (
        PhraseQuery("w1 w2", "l", slop=2),
        lance_query.PhraseQuery("w1 w2", "l", slop=2),
    ),
    "boolean": boolean_queries(),
    "boost": boost_queries(),
    "multi_match": multi_match_queries(),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize(("filter_text", "k"), [(None, None), ("id % 3 = 1", 7)])
def test_rows_rank_as_with_pylance(path, name, filter_text, k):
    query, of_pylance = QUERIES[name]
    theirs = lance.dataset(path).to_table(
        full_text_query=of_pylance,
        columns=["id", "_score"],
        filter=filter_text,
        prefilter=True,
        limit=k,
    )
    ours = open_dataset(path).search_text(query, k, columns=["id"], filter=filter_text)
    expected = np.sort(theirs["_score"].to_numpy())[::-1]
    np.testing.assert_allclose(ours["_score"].to_numpy(), expected, rtol=1e-5, atol=1e-6)
    if k is None:
        assert sorted(ours["id"].to_pylist()) == sorted(theirs["id"].to_pylist())
