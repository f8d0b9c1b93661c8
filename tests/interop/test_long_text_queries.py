"""Text queries that take long are cut into pieces, and stop between these."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.errors import CancelledByClientError, InvalidRequestError
from lance_core.index.text import part_search, tokenizer
from lance_core.index.text.parameters import TextParameters
from lance_core.index.text.queries import CombinedFieldsQuery, MatchQuery, PhraseQuery
from lance_core.index.text.query_tokens import MOST_TOKENS, query_tokens
from lance_core.query.deadline import Deadline
from lance_core.query.residency import NotResidentError
from lance_core.query.text_request import TextQuery

pytestmark = pytest.mark.interop

WORDS = [f"w{number}" for number in range(60)]
QUERIES = [
    MatchQuery(" ".join(WORDS), "t"),
    MatchQuery("w1 w2 w3", "t", operator="and"),
    MatchQuery("w10 w20", "t", fuzziness=1),
    PhraseQuery("w1 w2", "t", slop=3),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(8)
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(2_000)]
    where = str(tmp_path_factory.mktemp("long") / "t.lance")
    dataset = lance.write_dataset(pa.table({"t": texts}), where)
    dataset.create_scalar_index("t", "INVERTED", with_position=True)
    return where


@pytest.mark.parametrize("k", [10, None])
@pytest.mark.parametrize("query", QUERIES)
def test_pieces_give_what_one_go_does(path, query, k, monkeypatch):
    dataset = open_dataset(path)
    whole = dataset.search_text(query, k, columns=["_rowid", "_score"])
    assert whole.num_rows > 0
    monkeypatch.setattr(part_search, "_STEPS", 10)
    assert dataset.search_text(query, k, columns=["_rowid", "_score"]).equals(whole)


def times_asked(dataset, query, k, most):
    """Run a query for a caller who goes away after he was asked for some times."""
    asked = []

    def is_gone():
        asked.append(True)
        return len(asked) > most

    request = TextQuery(query, k=k, columns=("_rowid",))
    dataset.run(request, Deadline(is_cancelled=is_gone))
    return len(asked)


@pytest.mark.parametrize("k", [10, None])
@pytest.mark.parametrize("query", QUERIES)
def test_callers_are_asked_after_between_pieces(path, query, k, monkeypatch):
    dataset = open_dataset(path)
    times_asked(dataset, query, k, 10**6)
    in_one_go = times_asked(dataset, query, k, 10**6)
    monkeypatch.setattr(part_search, "_STEPS", 10)
    in_pieces = times_asked(dataset, query, k, 10**6)
    assert in_pieces > in_one_go + 5
    with pytest.raises(CancelledByClientError):
        times_asked(dataset, query, k, in_pieces - 2)


@pytest.mark.parametrize("query", [*QUERIES, CombinedFieldsQuery(" ".join(WORDS), ("t",))])
def test_callers_are_asked_after_before_each_list_is_decoded(path, query):
    cold = times_asked(open_dataset(path), query, 10, 10**6)
    dataset = open_dataset(path)
    with pytest.raises(CancelledByClientError):
        times_asked(dataset, query, 10, cold // 2)
    times_asked(dataset, query, 10, 10**6)
    warm = times_asked(dataset, query, 10, 10**6)
    assert cold >= warm + len(query.text.split())


def test_callers_are_asked_after_between_tokens_near_which_others_are_looked_for(path):
    near = MatchQuery(
        " ".join(f"w{number}x" for number in range(70)), "t", fuzziness=2, max_expansions=10**6
    )
    dataset = open_dataset(path)
    times_asked(dataset, near, 10, 10**6)
    assert times_asked(dataset, near, 10, 10**6) > 20
    with pytest.raises(CancelledByClientError):
        times_asked(dataset, near, 10, 10)


@pytest.mark.parametrize(
    "query", [MatchQuery("w1 " * 400, "t"), MatchQuery("w" * 65, "t", fuzziness=1)]
)
def test_queries_that_take_long_to_read_are_none_to_be_answered_at_once(path, query):
    dataset = open_dataset(path)
    request = TextQuery(query, columns=("_rowid",))
    dataset.run(request)
    with pytest.raises(NotResidentError):
        dataset.run(request, resident_only=True)
    short = TextQuery(MatchQuery("w1", "t"), columns=("_rowid",))
    dataset.run(short)
    assert dataset.run(short, resident_only=True).table.num_rows == 10


@pytest.mark.parametrize("kind", ["text", "json"])
def test_no_more_tokens_are_made_than_a_query_may_have(kind, monkeypatch):
    made = []

    def stem(text):
        made.append(text)
        return text

    monkeypatch.setattr(tokenizer, "stemmer_of", lambda language: stem)
    text = " ".join(f"n{number}" for number in range(3 * MOST_TOKENS))
    parameters = TextParameters(lance_tokenizer=kind, max_token_length=77)
    with pytest.raises(InvalidRequestError, match="more than 4096 tokens"):
        query_tokens(f"a.b,str,{text}" if kind == "json" else text, parameters)
    assert len(made) == MOST_TOKENS + 1
