"""``contains_tokens`` through inverted indices, in the states that tables come into."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core import ScanQuery, open_dataset
from lance_core.expr.words import words

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core import Dataset

pytestmark = pytest.mark.interop

WORDS = ["the", "Hello", "hello", "HÉLLO", "wörld", "world", "foo_bar", "x", "½", "का"]
PLAIN: dict[str, Any] = {"stem": False, "max_token_length": None}
ASKED: dict[str, dict[str, Any]] = {
    "usual": PLAIN,
    "all words": {**PLAIN, "remove_stop_words": False},
    "as written": {
        **PLAIN,
        "remove_stop_words": False,
        "lower_case": False,
        "ascii_folding": False,
        "with_position": True,
    },
    "own stop words": {**PLAIN, "custom_stop_words": ["hello", "x"], "block_size": 256},
}
NOT_ASKED: dict[str, dict[str, Any]] = {
    "stems": {"stem": True, "max_token_length": None},
    "limit": {"stem": False, "max_token_length": 40},
    "blanks": {**PLAIN, "base_tokenizer": "whitespace"},
    "language": {**PLAIN, "language": "German"},
}
STATES = ("fresh", "appended", "two segments", "compacted", "deferred", "ids", "ids compacted")
FILTERS = [
    "contains_tokens(t, 'hello')",
    "contains_tokens(t, 'Hello x')",
    "contains_tokens(t, 'hello the')",
    "contains_tokens(t, 'the')",
    "contains_tokens(t, '')",
    "contains_tokens(t, 'foo bar')",
    "contains_tokens(t, 'foo-bar ½')",
    "contains_tokens(t, 'का')",
    "contains_tokens(t, 'wörld') OR contains_tokens(t, 'HÉLLO')",
    "NOT contains_tokens(t, 'hello')",
    "NOT contains_tokens(t, 'the')",
    "contains_tokens(t, 'hello') AND NOT contains_tokens(t, 'world')",
    "NOT (contains_tokens(t, 'hello') AND contains_tokens(t, 'world'))",
    "NOT (contains_tokens(t, 'hello') OR id % 3 = 0)",
    "contains_tokens(t, 'hello') AND id < 200",
    "contains_tokens(t, 'hello') OR id = 7",
    "contains_tokens(t, 'hello absent')",
    "t IS NULL OR contains_tokens(t, 'x')",
    "contains_tokens(t, 'hello') IS NULL",
    "contains_tokens(lower(t), 'hello')",
]


def rows(first: int, last: int) -> pa.Table:
    rng = np.random.default_rng(first)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 5))) for _ in range(first, last)]
    column = pa.array(texts, pa.string(), mask=rng.random(last - first) < 0.1)
    return pa.table({"id": np.arange(first, last), "t": column})


def write_table(folder: Path, state: str, parameters: dict[str, Any]) -> None:
    """Write a table with an index, and bring it into a state."""
    has_ids = state.startswith("ids")
    dataset = lance.write_dataset(
        rows(0, 300), str(folder), max_rows_per_file=120, enable_stable_row_ids=has_ids
    )
    dataset.delete("id % 10 = 3")
    dataset.create_scalar_index("t", "INVERTED", **parameters)
    if state in {"fresh", "ids"}:
        return
    dataset.delete("id % 7 = 5")
    if state in {"appended", "two segments"}:
        dataset.insert(rows(300, 360))
    if state == "two segments":
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
        dataset.insert(rows(360, 400))
    if state in {"compacted", "deferred", "ids compacted"}:
        dataset.optimize.compact_files(
            target_rows_per_fragment=10_000, defer_index_remap=state == "deferred"
        )


def ids(dataset: Dataset, test: str) -> list[int]:
    return sorted(dataset.scan(["id"], filter=test).read_all()["id"].to_pylist())


def check(folder: Path) -> None:
    ours, theirs = open_dataset(folder), lance.dataset(str(folder))
    plain = folder.with_name("plain.lance")
    lance.write_dataset(theirs.to_table(), str(plain))
    scanned = open_dataset(plain)
    for test in FILTERS:
        expected = theirs.to_table(columns=["id"], filter=test)["id"].to_pylist()
        assert ids(ours, test) == sorted(expected), test
        assert ours.count_rows(test) == len(expected), test
        everywhere = theirs.scanner(columns=["id"], filter=test, use_scalar_index=False)
        assert ids(scanned, test) == sorted(everywhere.to_table()["id"].to_pylist()), test


@pytest.mark.parametrize("state", STATES)
def test_rows_are_those_that_pylance_finds(tmp_path: Path, state: str) -> None:
    write_table(tmp_path / "a.lance", state, PLAIN)
    check(tmp_path / "a.lance")


@pytest.mark.parametrize("name", [*ASKED, *NOT_ASKED])
def test_rows_are_those_that_pylance_finds_however_tokens_are_made(
    tmp_path: Path, name: str
) -> None:
    write_table(tmp_path / "a.lance", "appended", {**ASKED, **NOT_ASKED}[name])
    check(tmp_path / "a.lance")


@pytest.mark.parametrize("name", [*ASKED, *NOT_ASKED])
def test_an_index_is_asked_where_pylance_asks_it(tmp_path: Path, name: str) -> None:
    folder, test = tmp_path / "a.lance", "contains_tokens(t, 'Hello')"
    write_table(folder, "appended", {**ASKED, **NOT_ASKED}[name])
    theirs = lance.dataset(str(folder)).scanner(filter=test).explain_plan()
    assert ("ScalarIndexQuery" in theirs) is (name in ASKED)
    plan = open_dataset(folder).explain(ScanQuery(columns=("id",), filter=test))
    assert ("t has the words of 'Hello'" in plan) is (name in ASKED)


def test_trigrams_answer_for_words_too(tmp_path: Path) -> None:
    dataset: Any = lance.write_dataset(rows(0, 300), str(tmp_path / "a.lance"))
    dataset.create_scalar_index("t", "NGRAM")
    ours = open_dataset(tmp_path / "a.lance")
    for test in FILTERS:
        everywhere = dataset.scanner(columns=["id"], filter=test, use_scalar_index=False)
        assert ids(ours, test) == everywhere.to_table()["id"].to_pylist(), test
    plan = ours.explain(ScanQuery(columns=("id",), filter="contains_tokens(t, 'hello world')"))
    assert "NGRAM" in plan


def test_words_are_runs_of_letters_digits_and_vowel_signs() -> None:
    assert words("foo_bar, का ½ x2-y e\u0301t") == {"foo", "bar", "का", "½", "x2", "y", "e", "t"}


def test_each_row_may_ask_for_words_of_its_own(tmp_path: Path) -> None:
    texts = [f"word{number} and other{number}, foo_bar" for number in range(5_000)]
    asked: list[str | None] = [f"other{number} word{number}" for number in range(5_000)]
    asked[3:6] = ["other4", None, ""]
    lance.write_dataset(pa.table({"t": texts, "w": asked}), str(tmp_path / "t.lance"))
    dataset = open_dataset(tmp_path / "t.lance")
    started = time.process_time()
    assert dataset.count_rows("contains_tokens(t, w)") == 4_998
    assert time.process_time() - started < 4  # a millisecond for each word were ten seconds
    assert dataset.count_rows("contains_tokens(t, w) is null") == 1
