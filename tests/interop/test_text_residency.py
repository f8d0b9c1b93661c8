"""Text queries that may not wait, and what they read when they may."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.text_request import TextQuery
from tests.text_indices import PLAIN, texts

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("texts") / "texts.lance")
    table = pa.table({"id": range(800), "t": pa.array(texts(800), pa.string())})
    dataset = lance.write_dataset(table, place, max_rows_per_file=300)
    dataset.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    return place


QUERIES = [
    MatchQuery("aaw0 often", "t"),
    MatchQuery("aaw0", "t", fuzziness=1),
    PhraseQuery("often often", "t"),
]


@pytest.mark.parametrize("query", QUERIES, ids=["match", "fuzzy", "phrase"])
@pytest.mark.parametrize("filter_text", [None, "id < 500"])
def test_a_query_that_may_not_wait_is_answered_once_all_is_in_memory(path, query, filter_text):
    dataset = open_dataset(path)
    request = TextQuery(query, columns=("id",), filter=filter_text)
    with pytest.raises(NotResidentError):
        dataset.run(request, resident_only=True)
    waited = dataset.run(request)
    at_once = dataset.run(request, resident_only=True)
    assert at_once.table == waited.table
    assert waited.table.num_rows > 0
    assert waited.stats.cache_misses > 0
    assert at_once.stats.cache_misses == 0


def test_other_words_have_to_be_read_first(path):
    dataset = open_dataset(path)
    dataset.run(TextQuery(MatchQuery("aaw0", "t"), columns=("id",)))
    with pytest.raises(NotResidentError, match="posting lists"):
        dataset.run(TextQuery(MatchQuery("baw1", "t"), columns=("id",)), resident_only=True)
    with pytest.raises(NotResidentError, match="posting lists"):
        dataset.run(TextQuery(PhraseQuery("aaw0", "t"), columns=("id",)), resident_only=True)
