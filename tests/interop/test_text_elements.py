"""Text queries that find elements of lists by themselves, as pylance answers them too."""

from __future__ import annotations

import lance
import lance.query as lance_query
import numpy as np
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import BooleanQuery, MatchQuery, PhraseQuery
from tests.text_indices import PLAIN

pytestmark = pytest.mark.interop

WORDS = ["red", "fox", "blue", "dog", "old", "new"]


def some_lists(num, seed):
    rng = np.random.default_rng(seed)

    def text():
        chosen = rng.choice(WORDS, size=rng.integers(0, 6))
        return None if rng.random() < 0.1 else " ".join(chosen)

    return [
        None if rng.random() < 0.1 else [text() for _ in range(rng.integers(0, 4))]
        for _ in range(num)
    ]


@pytest.fixture(scope="module", params=[False, True], ids=["indexed", "appended"])
def path(request, tmp_path_factory):
    place = str(tmp_path_factory.mktemp("lists") / "lists.lance")
    table = pa.table(
        {
            "id": range(300),
            "l": pa.array(some_lists(300, 1), pa.list_(pa.string())),
            "t": ["red fox"] * 300,
        }
    )
    dataset = lance.write_dataset(table[:200], place, max_rows_per_file=90)
    dataset.create_scalar_index(
        "l",
        "INVERTED",
        with_position=True,
        document_granularity=lance_query.DocumentGranularity.LIST_ELEMENT,
        **PLAIN,
    )
    dataset.delete("id % 9 = 4")
    if request.param:
        lance.write_dataset(table[200:], place, mode="append")
    return place


QUERIES = [
    (MatchQuery("red fox", "l"), lance_query.MatchQuery("red fox", "l")),
    (PhraseQuery("red fox", "l"), lance_query.PhraseQuery("red fox", "l")),
    (
        BooleanQuery(must=(MatchQuery("red", "l"),), must_not=(MatchQuery("dog", "l"),)),
        lance_query.BooleanQuery(
            [
                (lance_query.Occur.MUST, lance_query.MatchQuery("red", "l")),
                (lance_query.Occur.MUST_NOT, lance_query.MatchQuery("dog", "l")),
            ]
        ),
    ),
]


@pytest.mark.parametrize(("query", "of_pylance"), QUERIES, ids=["match", "phrase", "boolean"])
@pytest.mark.parametrize("filter_text", [None, "id % 2 = 0"])
def test_each_element_is_a_row_of_the_answer(path, query, of_pylance, filter_text):
    theirs = lance.dataset(path).to_table(
        full_text_query=of_pylance,
        columns=["id", "_doc_index", "_score"],
        filter=filter_text,
        prefilter=True,
    )
    ours = open_dataset(path).search_text(query, None, columns=["id"], filter=filter_text)
    assert ours.schema.names == ["id", "_doc_index", "_score"]
    assert theirs.num_rows > 0

    def by_element(table):
        return {(row["id"], *row["_doc_index"]): row["_score"] for row in table.to_pylist()}

    assert by_element(ours) == by_element(theirs)
    scores = ours["_score"].to_numpy()
    assert (np.diff(scores) <= 0).all()


def test_elements_of_lists_and_rows_are_not_put_together(path):
    query = BooleanQuery(should=(MatchQuery("red", "l"), MatchQuery("red", "t")))
    with pytest.raises(InvalidRequestError, match='"l" is indexed by elements'):
        open_dataset(path).search_text(query)
