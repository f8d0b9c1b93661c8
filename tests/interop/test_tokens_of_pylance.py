"""Tokens that we make of texts against those in indices that pylance built of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from lance_core.index.text.list_texts import texts_of_lists
from lance_core.index.text.parameters import LANGUAGES, given_parameters, written_parameters
from lance_core.index.text.stop_words import stop_words
from lance_core.index.text.token_stream import TokenStream
from lance_core.index.text.tokenizer import Tokenizer
from tests.text_indices import Occurrences, held_by_all, open_text_segments, without_positions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.interop

WORDS = [
    *("The", "quick", "foxes", "running", "getUserName", "HTML2JSON", "user_name", "__init__"),
    *("std::vector", "p->next", "a!=b", "3.14", "can't", "Straße", "ﬁne", "½", "İstanbul", "ΣΟΦΟΣ"),
    *("世界", "x\u0301y", "กำ", "नमस्ते", "don't", "very", "doing", "\x0b", "\u2003", "\t", "\n"),
    *("Ⅷ", "ⓐ", "É", "ªº", "ʰB", "ǅa", "a" * 39, "a" * 40, "é" * 19, "é" * 20, "\U0001d49c"),
]
PLAIN = {"stem": False, "remove_stop_words": False, "ascii_folding": False}
AS_THEY_ARE = {**PLAIN, "lower_case": False, "max_token_length": None}
STEMMED = {"stem": True, "remove_stop_words": True}


def mixed_texts() -> list[str | None]:
    rng = np.random.default_rng(5)
    texts: list[str | None] = [None, "", "a", " "]
    for _ in range(80):
        chosen = rng.choice(WORDS, rng.integers(0, 12))
        blanks = rng.choice([" ", "-", "_", "", " "], len(chosen))
        texts.append("".join(np.char.add(chosen, blanks).tolist()))
    return texts


def of_pylance(path: Path, column: pa.Array, given: Mapping[str, object]) -> Occurrences:
    dataset: Any = lance.write_dataset(pa.table({"t": column}), str(path))
    dataset.create_scalar_index("t", "INVERTED", **{"with_position": True, **given})
    return held_by_all(open_text_segments(path))


def ours(texts: pa.Array, given: Mapping[str, object]) -> Occurrences:
    stream = TokenStream(Tokenizer(given_parameters(given)))
    found = stream.add(texts)
    occurrences: Occurrences = defaultdict(lambda: defaultdict(list))
    listed = zip(
        found.texts.tolist(), found.token_ids.tolist(), found.positions.tolist(), strict=True
    )
    for row, token_id, position in listed:
        occurrences[stream.tokens[token_id]][row].append(position)
    return occurrences


@pytest.mark.parametrize(
    "given",
    [
        *[
            {"base_tokenizer": base, **steps}
            for base in ("simple", "whitespace", "raw")
            for steps in ({}, AS_THEY_ARE, {"remove_stop_words": False, "max_token_length": 5})
        ],
        {"custom_stop_words": ["Fox", "fox", "run", "vector", "The"]},
        {"base_tokenizer": "ngram"},
        {"base_tokenizer": "ngram", "min_ngram_length": 1, "max_ngram_length": 4, **STEMMED},
        {"base_tokenizer": "ngram", "min_ngram_length": 2, "prefix_only": True},
        {"base_tokenizer": "code"},
        {"base_tokenizer": "code", "split_identifiers": True},
        {"base_tokenizer": "code", "split_identifiers": True, "split_on_numerics": False},
        {"base_tokenizer": "code", "split_identifiers": True, "preserve_original": False},
        {"base_tokenizer": "code", "split_identifiers": True, "max_token_length": 8, **STEMMED},
        {"base_tokenizer": "code", "index_operators": True, "split_identifiers": True},
    ],
    ids=str,
)
def test_all_ways_to_make_tokens_are_those_of_pylance(
    tmp_path: Path, given: dict[str, object]
) -> None:
    texts = pa.array(mixed_texts(), pa.string())
    given = {"base_tokenizer": "simple", **given}
    assert of_pylance(tmp_path, texts, given) == ours(texts, given)
    (file,) = tmp_path.glob("_indices/*/metadata.lance")
    stored = LanceFileReader(str(file)).metadata().schema.metadata[b"params"].decode()
    assert stored == written_parameters(given_parameters({**given, "with_position": True}))


@pytest.mark.parametrize("base", ["simple", "whitespace"])
def test_every_character_is_part_of_a_token_or_not_and_has_its_small_letter(
    tmp_path: Path, base: str
) -> None:
    codes = [code for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    codes += [*range(0x2A6D0, 0x2A710), *range(0x323A0, 0x33480), *range(0xE0000, 0xE0200)]
    pieces = [f"q{code:x}{chr(code)}z" for code in codes]
    rows = [" ".join(pieces[start : start + 256]) for start in range(0, len(pieces), 256)]
    texts = pa.array(rows, pa.string())
    given = {**PLAIN, "base_tokenizer": base, "max_token_length": None, "with_position": False}
    assert of_pylance(tmp_path, texts, given) == without_positions(ours(texts, given))


@pytest.mark.parametrize("stem", [True, False])
@pytest.mark.parametrize("language", LANGUAGES)
def test_stems_and_stop_words_of_all_languages_are_those_of_pylance(
    tmp_path: Path, language: str, stem: bool
) -> None:
    rng = np.random.default_rng(len(language))
    own = sorted(stop_words(language))
    others = sorted({word for each in LANGUAGES for word in stop_words(each)})
    made = ["".join(rng.choice(own, 2)) for _ in range(300)]
    made += [word[: len(word) - 1] + str(rng.choice(own)) for word in own]
    words = [*others, *made]
    rows = [" ".join(words[start : start + 100]) for start in range(0, len(words), 100)]
    texts = pa.array(rows, pa.string())
    given = {
        "base_tokenizer": "whitespace",
        "language": language,
        "stem": stem,
        "with_position": False,
    }
    found = without_positions(ours(texts, given))
    assert of_pylance(tmp_path, texts, given) == found
    assert len(found) > 1000


@pytest.mark.parametrize("base", ["simple", "raw", "ngram", "code"])
def test_texts_of_lists_have_the_tokens_that_pylance_finds(tmp_path: Path, base: str) -> None:
    rows: list[list[str | None] | None] = [
        ["the red", "the blue -", "x"],
        ["getUserName the", "fooBar"],
        ["a"],
        None,
        [],
    ]
    rows += [[None, "b the c", None, "", "d"], [None], ["", ""]]
    lists = pa.array(rows, pa.list_(pa.string()))
    given = {"base_tokenizer": base}
    assert of_pylance(tmp_path, lists, given) == ours(texts_of_lists(lists), given)
