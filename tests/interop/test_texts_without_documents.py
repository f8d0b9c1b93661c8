"""Searching where no text has a word that is indexed: nothing is found, by any query."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.index.text.queries import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    MatchQuery,
    MultiMatchQuery,
    PhraseQuery,
    TextNode,
)

pytestmark = pytest.mark.interop

WORD = MatchQuery("fox", "t")
QUERIES: list[TextNode] = [
    WORD,
    MatchQuery("fox", "t", fuzziness=2),
    MatchQuery("", "t"),
    PhraseQuery("red fox", "t"),
    CombinedFieldsQuery("fox", ("t", "u")),
    CombinedFieldsQuery("fox", ("t",), operator="and"),
    CombinedFieldsQuery("", ("t", "u")),
    BooleanQuery(must=(WORD,), must_not=(MatchQuery("hen", "u"),)),
    BoostQuery(WORD, MatchQuery("hen", "u")),
    MultiMatchQuery((WORD, MatchQuery("fox", "u"))),
]
TEXTS = {"no_rows": [], "nulls": [None, None], "stop_words": [None, "the"], "blanks": ["", " "]}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("is_indexed", [True, False])
def test_nothing_is_found_where_there_are_no_documents(tmp_path, name, is_indexed):
    texts = pa.array(TEXTS[name], pa.string())
    path = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(pa.table({"t": texts, "u": texts}), path)
    if is_indexed:
        for column in ("t", "u"):
            dataset.create_scalar_index(column, "INVERTED", with_position=True)
    ours = open_dataset(path)
    for query in QUERIES:
        for k in (5, None):
            found = ours.search_text(query, k, columns=["t", "_rowid"])
            assert found.num_rows == 0, query
            assert found.schema.names == ["t", "_rowid", "_score"]
    assert ours.search_text(WORD, 5, filter="t is not null").num_rows == 0
