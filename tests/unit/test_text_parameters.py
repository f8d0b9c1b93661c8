from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.text.parameters import (
    BASE_TOKENIZERS,
    LANGUAGES,
    TextParameters,
    given_parameters,
    read_parameters,
    written_parameters,
)

OF_PYLANCE = (
    '{"lance_tokenizer":"text","base_tokenizer":"simple","language":"English",'
    '"with_position":true,"max_token_length":40,"lower_case":true,"stem":true,'
    '"remove_stop_words":true,"custom_stop_words":null,"ascii_folding":true,"min_ngram_length":3,'
    '"max_ngram_length":3,"prefix_only":false,"block_size":128,"split_identifiers":false,'
    '"split_on_numerics":false,"preserve_original":false,"index_operators":false}'
)


def test_what_is_not_given_is_as_pylance_has_it() -> None:
    assert given_parameters({}) == TextParameters()
    assert written_parameters(given_parameters({"with_position": True})) == OF_PYLANCE


def test_ngrams_and_code_are_neither_stemmed_nor_left_out_unless_asked_for() -> None:
    plain = replace(TextParameters(), stem=False, remove_stop_words=False)
    ngrams = given_parameters({"base_tokenizer": "ngram"})
    assert ngrams == replace(plain, base_tokenizer="ngram")
    code = given_parameters({"base_tokenizer": "code"})
    assert code == replace(
        plain, base_tokenizer="code", split_on_numerics=True, preserve_original=True
    )
    assert given_parameters({"base_tokenizer": "code", "stem": True}).stem
    assert not given_parameters(
        {"base_tokenizer": "code", "preserve_original": False}
    ).preserve_original


def test_none_is_as_good_as_absent_but_takes_the_limit_away() -> None:
    assert given_parameters({"stem": None, "language": None}) == TextParameters()
    assert given_parameters({"max_token_length": None}).max_token_length is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"foo": 1}, "no parameter 'foo'"),
        ({"lance_tokenizer": "json"}, "no parameter 'lance_tokenizer'"),
        ({"base_tokenizer": "icu"}, "unsupported tokenizer 'icu'; known: simple"),
        ({"base_tokenizer": "jieba/default"}, "unsupported tokenizer 'jieba/default'"),
        ({"base_tokenizer": ["simple"]}, r"unsupported tokenizer \['simple'\]"),
        ({"language": "english"}, "unsupported language 'english'; known: Arabic"),
        ({"stem": "yes"}, "stem is True or False, not 'yes'"),
        ({"with_position": 1}, "with_position is True or False, not 1"),
        ({"max_token_length": -1}, "max_token_length is -1"),
        ({"max_token_length": True}, "max_token_length is a whole number"),
        ({"block_size": 64}, "block_size is 128 or 256, not 64"),
        ({"custom_stop_words": "the"}, "stop words are a list"),
        ({"custom_stop_words": [1]}, "a stop word is a str"),
        ({"split_identifiers": True}, "split_identifiers needs base_tokenizer='code'"),
        ({"base_tokenizer": "ngram", "min_ngram_length": 0}, "n-grams of 0 to 3 characters"),
        ({"base_tokenizer": "ngram", "max_ngram_length": 2}, "n-grams of 3 to 2 characters"),
    ],
)
def test_what_no_index_can_have_is_refused(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        given_parameters(given)


def test_numbers_of_ngrams_do_not_matter_to_other_tokenizers() -> None:
    assert given_parameters({"max_ngram_length": 2}).max_ngram_length == 2


@pytest.mark.parametrize("base", BASE_TOKENIZERS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_written_parameters_are_read_again(base: str, language: str) -> None:
    given = {"base_tokenizer": base, "language": language, "custom_stop_words": ["éa", "b"]}
    parameters = given_parameters(given)
    assert read_parameters(written_parameters(parameters), "m") == parameters


def test_old_files_may_lack_keys_and_have_others() -> None:
    stored = {"base_tokenizer": "simple", "stem": False, "max_token_length": None, "new_key": 1}
    expected = replace(TextParameters(), stem=False, max_token_length=None)
    assert read_parameters(json.dumps(stored), "m") == expected
    assert read_parameters('{"lance_tokenizer": null}', "m") == TextParameters()


@pytest.mark.parametrize(
    "stored",
    [
        {"base_tokenizer": "icu"},
        {"base_tokenizer": "icu/split"},
        {"base_tokenizer": "lindera/ipadic"},
        {"base_tokenizer": "jieba/default"},
        {"base_tokenizer": None},
        {"base_tokenizer": []},
        {"lance_tokenizer": "other"},
    ],
)
def test_tokens_that_we_cannot_make_leave_a_segment_unused(stored: dict[str, object]) -> None:
    with pytest.raises(UnusableSegmentError, match="support"):
        read_parameters(json.dumps(stored), "m")


@pytest.mark.parametrize(
    "params",
    [
        *("", "[1]", "null", "{", '{"stem": 1}', '{"language": "Klingon"}', '{"block_size": 0}'),
        *('{"max_token_length": 1.5}', '{"custom_stop_words": "a"}', "[" * 100_000),
        *('{"max_token_length": 1' + "0" * 30 + "}", '{"custom_stop_words": ["\\ud800"]}'),
        '{"base_tokenizer": "ngram", "min_ngram_length": 0}',
    ],
)
def test_what_no_writer_writes_is_a_corrupt_file(params: str) -> None:
    with pytest.raises(CorruptFileError, match="corrupt file m: the tokenizer's parameters"):
        read_parameters(params, "m")
