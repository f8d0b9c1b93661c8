from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.text.queries import MatchQuery
from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.request import NamedExpression, VectorQuery
from lance_core.query.text_request import TextQuery

VECTOR = VectorQuery(np.ones((1, 2), np.float32), k=99, offset=7, columns=("a",), filter="x > 1")
TEXT = TextQuery(MatchQuery("fox"), k=98, offset=6, with_row_id=True, filter="x > 1")


def test_both_queries_look_for_as_many_rows_as_the_answer_may_need() -> None:
    request = HybridQuery(VECTOR, TEXT, k=5, offset=3)
    for each in (request.nearest, request.matching):
        assert (each.k, each.offset, each.columns) == (8, 0, ("_rowaddr",))
        assert (each.with_row_id, each.filter) == (False, "x > 1")
    assert HybridQuery(VECTOR, TEXT, k=None, offset=3).nearest.k is None


def test_a_batch_of_one_vector_is_one_query_and_several_are_told_apart_later() -> None:
    batched = VectorQuery(np.ones((1, 2), np.float32), batched=True)
    assert not HybridQuery(batched, TEXT).nearest.batched
    several = VectorQuery(np.ones((3, 2), np.float32), batched=True)
    assert HybridQuery(several, TEXT).nearest.batched


def test_what_is_shown_depends_on_columns_and_parameters_only() -> None:
    named = (NamedExpression("twice", "a * $by"), "b")

    def shown(by: int, k: int) -> HybridQuery:
        vector = VectorQuery(VECTOR.vectors, k=k, params={"by": by})
        return HybridQuery(vector, TEXT, k=k, columns=named)

    assert shown(2, 1).shown == shown(2, 5).shown != shown(3, 1).shown
    assert "a * $by" in shown(2, 1).texts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vector": TEXT}, "vector is TextQuery; give a VectorQuery"),
        ({"text": "fox"}, "text is str; give a TextQuery"),
        ({"fusion": "rrf"}, "fusion is 'rrf'; give RRF"),
        ({"vector": VectorQuery(None, row_ids=(1, 2))}, "2 row ids are given"),
        ({"k": 0}, "k is 0"),
        ({"offset": None}, "offset is None"),
        ({"columns": ["a"]}, "columns is"),
        ({"with_row_id": 1}, "with_row_id is 1"),
    ],
    ids=["vector", "text", "fusion", "row ids", "k", "offset", "columns", "with_row_id"],
)
def test_parts_that_make_no_query_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        HybridQuery(**{"vector": VECTOR, "text": TEXT, **options})
