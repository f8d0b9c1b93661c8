from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.expr.token_characters import token_characters
from lance_core.index.text.list_texts import texts_of_lists
from lance_core.index.text.parameters import given_parameters
from lance_core.index.text.stop_words import stop_words
from lance_core.index.text.tokenizer import Tokenizer

SAMPLE = "quick-brown Fox_jumps! foo.bar@x.com 3.14 can't"
PLAIN = {"stem": False, "remove_stop_words": False}


def tokens(text: str, **given: object) -> list[str]:
    return [token.text for token in Tokenizer(given_parameters(given)).tokens(text)]


def places(text: str, **given: object) -> list[tuple[str, int]]:
    found = Tokenizer(given_parameters(given)).tokens(text)
    return [(token.text, token.position) for token in found]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("simple", "quick brown fox jumps foo bar x com 3 14 can t"),
        ("whitespace", "quick-brown fox_jumps! foo.bar@x.com 3.14 can't"),
        ("code", "quick brown fox_jumps foo bar x com 3 14 can t"),
    ],
)
def test_base_tokenizers_take_texts_apart_as_the_page_says(base: str, expected: str) -> None:
    assert tokens(SAMPLE, base_tokenizer=base, **PLAIN) == expected.split()


def test_a_raw_text_is_one_token_even_if_it_is_empty() -> None:
    assert tokens("Fox jumps.", base_tokenizer="raw", **PLAIN) == ["fox jumps."]
    assert tokens("", base_tokenizer="raw") == [""]


def test_only_some_blanks_part_words() -> None:
    text = "a\tb\nc\x0cd\re f\x0bg\x85h\u00a0i\u2003j"
    expected = ["a", "b", "c", "d", "e", "f\x0bg\x85h\u00a0i\u2003j"]
    given = {"base_tokenizer": "whitespace", "ascii_folding": False, **PLAIN}
    assert tokens(text, **given) == expected


def test_ngrams_have_blanks_and_no_positions() -> None:
    given = {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3}
    assert places("Ab é", **given) == [
        *(("ab", 0), ("ab ", 0), ("b ", 0), ("b e", 0), (" e", 0)),
    ]
    assert tokens("Hello World", prefix_only=True, **given) == ["he", "hel"]
    assert tokens("a", **given) == []


def test_words_are_stemmed_before_stop_words_are_left_out() -> None:
    assert tokens("very because before doing having") == ["veri", "becaus", "befor"]


def test_what_is_left_out_leaves_a_gap() -> None:
    assert places("The quick the brown") == [("quick", 1), ("brown", 3)]
    assert places("a" * 40 + " fox") == [("fox", 1)]


def test_long_tokens_are_left_out_by_their_bytes_before_anything_else() -> None:
    assert tokens("abcd abcde éé éééé", max_token_length=5, **PLAIN) == ["abcd", "ee"]
    assert tokens("a" * 39 + " " + "b" * 40) == ["a" * 39]
    assert tokens("b" * 400, max_token_length=None) == ["b" * 400]
    assert tokens("a", max_token_length=0, **PLAIN) == []


def test_small_letters_are_made_character_by_character() -> None:
    given = {"ascii_folding": False, **PLAIN}
    assert tokens("ΣΟΦΟΣ İx ẞ", **given) == ["σοφοσ", "i̇x", "ß"]
    assert tokens("Fox", lower_case=False, **given) == ["Fox"]


def test_own_stop_words_replace_those_of_the_language_and_are_compared_with_stems() -> None:
    given = {"custom_stop_words": ["Fox", "run", "The", "cafe"]}
    assert tokens("The Fox running café", **given) == ["the", "fox", "cafe"]
    assert tokens("fox", custom_stop_words=["fox"], remove_stop_words=False) == ["fox"]


def test_stop_words_have_small_letters() -> None:
    given = {"stem": False, "lower_case": False}
    assert tokens("The the", **given) == ["The"]
    assert "not" not in stop_words("English")


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("German", "die Häuser", ["haus"]),
        ("Dutch", "de lichamelijkheden", ["lichamelijk"]),
        ("French", "les continuellement", ["continuel"]),
        ("Russian", "в красивая", ["красив"]),
    ],
)
def test_languages_have_stems_and_stop_words(language: str, text: str, expected: list[str]) -> None:
    assert tokens(text, language=language) == expected


def test_identifiers_fall_into_parts_that_take_positions() -> None:
    given = {"base_tokenizer": "code", "split_identifiers": True}
    assert places("getUserName x HTML2JSON", **given) == [
        *(("getusername", 0), ("get", 0), ("user", 1), ("name", 2), ("x", 3)),
        *(("html2json", 4), ("html", 4), ("2", 5), ("json", 6)),
    ]
    assert places("fooBar x", preserve_original=False, **given) == [
        *(("foo", 0), ("bar", 1), ("x", 2)),
    ]
    assert tokens("a1b2 aB", split_on_numerics=False, **given) == ["a1b2", "ab", "a", "b"]
    assert tokens("XMLHttp __init__ _ a_b", **given) == [
        *("xmlhttp", "xml", "http", "__init__", "_", "a_b", "a", "b"),
    ]


def test_parts_are_measured_one_by_one() -> None:
    text = "a" * 20 + "B" * 3 + "c" * 20 + " x"
    given = {"base_tokenizer": "code", "split_identifiers": True}
    assert places(text, **given) == [("a" * 20, 0), ("bb", 1), ("b" + "c" * 20, 2), ("x", 3)]


def test_operators_are_runs_if_they_are_asked_for() -> None:
    given = {"base_tokenizer": "code", "index_operators": True}
    assert tokens("std::map p->next a!=b c:::->d (e) #f", **given) == [
        *("std", "::", "map", "p", "->", "next", "a", "!=", "b", "c", ":::->", "d", "e", "f"),
    ]


def test_vowel_signs_belong_to_words_and_marks_do_not() -> None:
    taken = token_characters()
    assert all(taken[ord(each)] for each in "aZ9é½²世ीⅧⓐ")
    assert not any(taken[ord(each)] for each in "_ -\u0301\U0010ffff")


def test_texts_of_a_list_are_one_text() -> None:
    lists = pa.array([["red fox", None, "blue"], None, [], ["", "a", "", " b"], [None, ""]])
    assert texts_of_lists(lists).to_pylist() == ["red fox blue", "", "", "a   b", ""]
    wide = lists.cast(pa.large_list(pa.large_string())).slice(2)
    assert texts_of_lists(wide).to_pylist() == ["", "a   b", ""]
    assert len(texts_of_lists(lists.slice(5))) == 0
