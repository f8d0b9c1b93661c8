r"""Regular expressions find the texts that they find in pylance, or are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import lance_core
from lance_core.errors import InvalidRequestError, TypeMismatchError
from lance_core.expr.filter import parse_filter
from tests.regex_examples import ANSWERED, ONLY_THEIRS, REFUSED, SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.interop

FLAGS = ("i", "m", "s", "x", "im", "isx")
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
PIECES = st.sampled_from(
    [
        *("a", "b", "é", "K", " ", "-", "foo", ".", "^", "$", "|", "(", ")", "(?:", "(?i)", "(?x)"),
        *(
            r"\w",
            r"\W",
            r"\d",
            r"\D",
            r"\s",
            r"\S",
            r"\b",
            r"\n",
            r"\x{e9}",
            r"\.",
            r"\pL",
            r"\P{Lu}",
        ),
        *(
            "[a-c]",
            r"[^\W_]",
            r"[\W\d]",
            "[é-]",
            "[",
            "]",
            "*",
            "+",
            "?",
            "{2}",
            "{1,}",
            "{0,2}",
            "#",
        ),
    ]
)


def written(folder: Path, texts: Sequence[str | None]) -> lance.LanceDataset:
    table = pa.table({"row": range(len(texts)), "s": pa.array(texts, pa.string())})
    return lance.write_dataset(table, str(folder / "t.lance"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    return written(tmp_path_factory.mktemp("regex"), SUBJECTS)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    made = written(tmp_path_factory.mktemp("regex-ngrams"), SUBJECTS)
    made.create_scalar_index("s", "NGRAM")
    return made


@pytest.fixture(scope="module")
def batch(dataset: lance.LanceDataset) -> pa.RecordBatch:
    (found,) = dataset.to_table().combine_chunks().to_batches()
    return found


def asking(pattern: str, flags: str | None = None) -> str:
    text = pattern.replace("'", "''")
    return f"regexp_like(s, '{text}')" if flags is None else f"regexp_like(s, '{text}', '{flags}')"


def theirs(dataset: lance.LanceDataset, text: str) -> list[int] | None:
    try:
        found: list[int] = dataset.to_table(columns=["row"], filter=text)["row"].to_pylist()
    except BaseException:  # it panics at some
        return None
    return found


def ours(batch: pa.RecordBatch, text: str) -> list[int]:
    holds = parse_filter(text, batch.schema).holds(batch).to_pylist()
    return [row for row, is_found in enumerate(holds) if is_found]


def test_patterns_find_the_texts_that_pylance_finds(dataset, batch):
    for pattern in ANSWERED:
        assert ours(batch, asking(pattern)) == theirs(dataset, asking(pattern)), pattern


@pytest.mark.parametrize("flags", FLAGS)
def test_flags_mean_what_they_mean_to_pylance(dataset, batch, flags):
    for pattern in (r"\w", "a", "^b$", "a.b", "K", "a b", r"\bfoo\b", "É|foo", r"[^\W\d]"):
        text = asking(pattern, flags)
        assert ours(batch, text) == theirs(dataset, text), pattern


def test_what_pylance_refuses_is_refused(dataset, batch):
    for pattern in REFUSED:
        assert theirs(dataset, asking(pattern)) is None, pattern
        with pytest.raises(TypeMismatchError, match="at character 1: Invalid regular expression"):
            ours(batch, asking(pattern))


@pytest.mark.parametrize(("pattern", "told"), ONLY_THEIRS.items())
def test_what_cannot_be_answered_alike_is_refused_by_name(dataset, batch, pattern, told):
    assert theirs(dataset, asking(pattern)) is not None
    with pytest.raises(TypeMismatchError, match=told):
        ours(batch, asking(pattern))


def test_an_index_of_trigrams_changes_no_answer(dataset, indexed, batch):
    opened = lance_core.open_dataset(str(indexed.uri))
    for pattern in ANSWERED:
        found = opened.scan(filter=asking(pattern), columns=["row"]).read_all()["row"].to_pylist()
        assert sorted(found) == ours(batch, asking(pattern)), pattern


def test_sets_hold_the_characters_that_they_hold_in_pylance(tmp_path: Path):
    dataset = written(tmp_path, CHARACTERS)
    (batch,) = dataset.to_table().combine_chunks().to_batches()
    for pattern in (r"\w", r"[\W]", r"\d", r"\s", r"\p{Lt}", r"\p{Zs}"):
        assert ours(batch, asking(pattern)) == theirs(dataset, asking(pattern)), pattern


@given(st.lists(PIECES, max_size=8).map("".join))
@settings(max_examples=150, deadline=None)
def test_random_patterns_are_answered_alike_or_refused(dataset, batch, pattern):
    try:
        found = ours(batch, asking(pattern))
    except InvalidRequestError:
        return
    assert found == theirs(dataset, asking(pattern))
