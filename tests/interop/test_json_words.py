"""Words of JSON documents: the tokens of pylance, its scores, and its reading of what we built."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import lance
import lance.query as lance_query
import numpy as np
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.index.text.json_values import json_values
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from lance_core.operations.verify_words import check_words
from tests.text_indices import held_by_all, open_text_segments

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

WORDS = ["The", "quick", "foxes", "Émile", "foo_bar", "x", "12", "run-ning"]
WAYS: dict[str, dict[str, Any]] = {
    "usual": {},
    "positions": {"with_position": True, "stem": False},
    "all words": {"remove_stop_words": False, "ascii_folding": False, "lower_case": False},
    "n-grams": {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3},
    "raw": {"base_tokenizer": "raw", "max_token_length": None},
    "code": {"base_tokenizer": "code", "split_identifiers": True, "with_position": True},
}
ASKED = [
    "a,str,quick",
    "a,str,quick foxes",
    "a,str,quick the x",
    "a.b,str,Émile",
    "list,str,x",
    "n,number,3",
    "n,number,3.5",
    "n,number,1e+300",
    "t,bool,true;list,null,null",
    ",str,quick",
    "a,str,foo_bar;n,number,3",
    "a,str,x,12",
    "absent,str,quick",
]


def value(rng: np.random.Generator, depth: int) -> object:
    chosen = int(rng.integers(0, 8 if depth < 3 else 6))
    if chosen == 6:
        return [value(rng, depth + 1) for _ in range(rng.integers(0, 4))]
    if chosen == 7:
        keys = rng.choice(["a", "b", "list", "n", "t", ""], rng.integers(0, 5), replace=False)
        return {str(key): value(rng, depth + 1) for key in keys}
    words = " ".join(rng.choice(WORDS, rng.integers(0, 5)))
    number = [3, 3.5, 1e300, -7, 2**64 - 1][int(rng.integers(0, 5))]
    return [words, number, bool(rng.integers(0, 2)), None, " ".join(WORDS), words][chosen]


def documents(first: int, last: int) -> pa.Table:
    rng = np.random.default_rng(first)
    made = [
        {"a": value(rng, 2), "list": [value(rng, 3)], "n": 3, "t": bool(row % 2)}
        if row % 3 == 0
        else value(rng, 0)
        for row in range(first, last)
    ]
    texts = [None if row % 17 == 4 else json.dumps(each) for row, each in enumerate(made)]
    return pa.table({"id": range(first, last), "j": pa.array(texts, pa.json_())})


def scores(found: pa.Table) -> dict[int, float]:
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def check(folder: Path, *, phrases: bool) -> None:
    ours, theirs = open_dataset(folder), lance.dataset(str(folder))
    num_found = 0
    for text in ASKED:
        asked: list[tuple[Any, Any]] = [
            (MatchQuery(text, "j"), lance_query.MatchQuery(text, "j")),
            (
                MatchQuery(text, "j", operator="and"),
                lance_query.MatchQuery(text, "j", operator=lance_query.FullTextOperator.AND),
            ),
        ]
        if phrases:
            asked.append((PhraseQuery(text, "j"), lance_query.PhraseQuery(text, "j")))
        for our_query, their_query in asked:
            found = ours.search_text(our_query, None, columns=["id"])
            expected = theirs.to_table(full_text_query=their_query, columns=["id", "_score"])
            assert scores(found) == scores(expected), our_query
            num_found += len(found)
    assert num_found > 100


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_those_of_pylance(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.lance"
    dataset: Any = lance.write_dataset(documents(0, 200), str(path), max_rows_per_file=90)
    dataset.create_scalar_index("j", "INVERTED", **WAYS[way])
    dataset.delete("id % 13 = 2")
    check(path, phrases="with_position" in WAYS[way])
    dataset.insert(documents(200, 260))
    check(path, phrases=False)


@pytest.mark.parametrize("way", WAYS)
def test_what_we_build_holds_what_that_of_pylance_holds(tmp_path: Path, way: str) -> None:
    ours, theirs = tmp_path / "ours.lance", tmp_path / "theirs.lance"
    for path in (ours, theirs):
        lance.write_dataset(documents(0, 200), str(path), max_rows_per_file=90)
    open_dataset(ours).create_index("j", "INVERTED", **WAYS[way])
    dataset: Any = lance.dataset(str(theirs))
    dataset.create_scalar_index("j", "INVERTED", **WAYS[way])
    found, expected = (open_text_segments(path, "j_idx") for path in (ours, theirs))
    assert held_by_all(found) == held_by_all(expected)
    assert found[0].parameters == expected[0].parameters
    check_words(found[0])
    check_words(expected[0])
    check(ours, phrases="with_position" in WAYS[way])
    assert (
        "MatchQuery"
        in lance.dataset(str(ours))
        .scanner(full_text_query=lance_query.MatchQuery("a,str,x", "j"))
        .explain_plan()
    )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,str,quik", {"fuzziness": 1}),
        ("a,str,quik", {"fuzziness": 1, "prefix_length": 3}),
        ("a,str,quik", {"fuzziness": 1, "prefix_length": 4}),
        ("n,number,4", {"fuzziness": 1}),
        ("b,str,quick", {"fuzziness": 1}),
    ],
)
def test_only_values_may_be_misspelt(tmp_path: Path, text: str, options: Any) -> None:
    path = tmp_path / "a.lance"
    dataset: Any = lance.write_dataset(documents(0, 200), str(path))
    dataset.create_scalar_index("j", "INVERTED")
    found = open_dataset(path).search_text(MatchQuery(text, "j", **options), None, columns=["id"])
    theirs = lance_query.MatchQuery(text, "j", **options)
    expected = dataset.to_table(full_text_query=theirs, columns=["id", "_score"])
    assert scores(found) == scores(expected)


def test_without_an_index_documents_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.lance"
    dataset: Any = lance.write_dataset(documents(0, 100), str(path))
    for text in ("quick", "a,str,quick", "true"):
        found = open_dataset(path).search_text(MatchQuery(text, "j"), None, columns=["id"])
        theirs = lance_query.MatchQuery(text, "j")
        expected = dataset.to_table(full_text_query=theirs, columns=["id", "_score"])
        assert len(found) > 0
        assert scores(found) == scores(expected)


@pytest.mark.parametrize("text", ["quick", "a,str", "a,STR,quick", "a, str,x", "a,str,x;", ""])
def test_a_query_says_where_and_what(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.lance"
    dataset: Any = lance.write_dataset(documents(0, 20), str(path))
    dataset.create_scalar_index("j", "INVERTED")
    with pytest.raises(InvalidRequestError, match="path,kind,value"):
        open_dataset(path).search_text(MatchQuery(text, "j"))


def test_documents_that_are_nested_too_deep_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="JSON"):
        list(json_values("[" * 100_000 + "]" * 100_000))
