"""What an index is asked, told to people."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lance_core.expr.index_query import (
    AnyOf,
    Between,
    ContainsAll,
    HasLabels,
    IndexLeaf,
    IsNull,
    StartsWith,
)
from lance_core.query.lookup_text import lookup_text

if TYPE_CHECKING:
    from lance_core.expr.index_query import LeafQuery

DAY = pa.scalar(dt.date(2024, 1, 5))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (AnyOf(pa.array([3])), "c = 3"),
        (AnyOf(pa.array(["a", "it's"])), """c IN ('a', "it's")"""),
        (AnyOf(pa.array(range(9))), "c IN (0, 1, 2, 3, 4, ... 4 more)"),
        (Between(DAY, None), "c >= 2024-01-05"),
        (Between(pa.scalar(1), pa.scalar(4), includes_upper=False), "c >= 1 AND c < 4"),
        (IsNull(), "c IS NULL"),
        (StartsWith(pa.scalar("ab"), is_exact=True), "c starts with 'ab'"),
        (ContainsAll(("abc", "def")), "c contains 'abc' and 'def'"),
        (HasLabels(pa.array(["a", None]), needs_all=True), "c has all of ('a', NULL)"),
        (HasLabels(pa.array([1]), needs_all=False), "c has any of (1)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_query_has_a_text(query: LeafQuery, text: str) -> None:
    assert lookup_text(IndexLeaf(1, (query, IsNull())), "c") == text
    assert lookup_text(IndexLeaf(1, (query,), is_negated=True), "c") == f"NOT ({text})"


def test_long_values_only_begin() -> None:
    text = lookup_text(IndexLeaf(1, (AnyOf(pa.array(["x" * 500])),)), "c")
    assert len(text) < 120
