"""How an inverted index makes tokens of texts: what its files say, what callers ask for."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.file.arguments import checked_list, checked_number, checked_text
from lance_core.index.registry import UnusableSegmentError

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = (
    *("Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek"),
    *("Hungarian", "Italian", "Norwegian", "Portuguese", "Romanian", "Russian", "Spanish"),
    *("Swedish", "Tamil", "Turkish"),
)
BASE_TOKENIZERS = ("simple", "whitespace", "raw", "ngram", "code")
BLOCK_SIZES = (128, 256)
"""How many documents a block of a posting list may have."""

JSON = "json"
"""What ``lance_tokenizer`` is of columns of JSON documents."""

_TEXT = "text"
_CODE, _NGRAM = "code", "ngram"
CODE_FLAGS = ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators")
"""Parameters of the base tokenizer ``code``."""

_MOST = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class TextParameters:
    """How an inverted index makes tokens.

    Parameters
    ----------
    base_tokenizer
        One of `BASE_TOKENIZERS`.
    language
        One of `LANGUAGES`, of stems and stop words.
    with_position
        Whether the index has positions, which phrases need.
    max_token_length
        Only tokens of fewer bytes are kept, as the base tokenizer gives them; None keeps all.
    lower_case, stem, remove_stop_words, ascii_folding
        Which steps follow, in the order: lower case, stems, stop words, folding.
    custom_stop_words
        Instead of those of the language; None for these.
    min_ngram_length, max_ngram_length, prefix_only
        How many characters n-grams have, and whether only those at the start are made.
    block_size
        Documents of a block of a posting list, one of `BLOCK_SIZES`.
    split_identifiers, split_on_numerics, preserve_original
        Of the base tokenizer ``code``: whether parts of identifiers are tokens, whether digits are
        parts of their own, and whether the whole is a token too.
    index_operators
        Of the base tokenizer ``code``: whether runs of operators are tokens.
    lance_tokenizer
        ``text``, or ``json`` where texts are JSON documents: what the column is, so nobody asks
        for it.

    Notes
    -----
    Scalar index page, section 8.2. Values that are not given are those of pylance 14.0.2 for
    ``simple``.
    """

    base_tokenizer: str = "simple"
    language: str = "English"
    with_position: bool = False
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: tuple[str, ...] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    block_size: int = 128
    split_identifiers: bool = False
    split_on_numerics: bool = False
    preserve_original: bool = False
    index_operators: bool = False
    lance_tokenizer: str = "text"


_OF_COLUMN = "lance_tokenizer"
PARAMETER_NAMES = tuple(field.name for field in fields(TextParameters) if field.name != _OF_COLUMN)

_USUAL = TextParameters()


def given_parameters(given: Mapping[str, object]) -> TextParameters:
    """Check what a caller asks for and fill in the rest.

    Parameters
    ----------
    given
        By the names of `TextParameters`. None is as good as absent, but for ``max_token_length``,
        of which it takes the limit away.

    Raises
    ------
    InvalidRequestError
        There is no such parameter or value, or the base tokenizer does not take it.

    Examples
    --------
    >>> given_parameters({"base_tokenizer": "ngram"}).stem
    False
    """
    unknown = sorted(set(given) - set(PARAMETER_NAMES))
    if len(unknown) > 0:
        raise InvalidRequestError(
            f"an INVERTED index has no parameter {unknown[0]!r}; known:"
            f" {', '.join(PARAMETER_NAMES)}"
        )
    wanted = {
        name: value
        for name, value in given.items()
        if value is not None or name == "max_token_length"
    }
    base = wanted.get("base_tokenizer", "simple")
    of_code = [name for name in CODE_FLAGS if name in wanted]
    if base != _CODE and len(of_code) > 0:
        raise InvalidRequestError(f"{of_code[0]} needs base_tokenizer='code', not {base!r}")
    return _checked({**_usual_values(base), **wanted})


def read_parameters(params: str, path: str) -> TextParameters:
    """Return the parameters that a file tells under ``params`` or ``tokenizer``.

    Parameters
    ----------
    params
        A JSON object.
    path
        Of the file, for errors.

    Raises
    ------
    CorruptFileError
        The text is no JSON object, or a value is none that the format knows.
    UnusableSegmentError
        The tokens are made in a way that this release does not have, as by a base tokenizer with a
        dictionary.
    """
    try:
        stored = json.loads(params)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(path, f"the tokenizer's parameters are no JSON: {error}") from error
    if not isinstance(stored, dict):
        raise CorruptFileError(path, "the tokenizer's parameters are no JSON object")
    of_column = stored.get(_OF_COLUMN)
    if of_column not in (None, _TEXT, JSON):
        raise UnusableSegmentError(f"tokens of {of_column!r} are not supported")
    base = stored.get("base_tokenizer", "simple")
    if base not in BASE_TOKENIZERS:
        raise UnusableSegmentError(f"unsupported tokenizer {base!r}")
    known = {name: stored[name] for name in PARAMETER_NAMES if name in stored}
    try:
        parameters = _checked(known)
    except InvalidRequestError as error:
        raise CorruptFileError(path, f"the tokenizer's parameters: {error}") from error
    return parameters if of_column is None else replace(parameters, lance_tokenizer=of_column)


def written_parameters(parameters: TextParameters) -> str:
    """Return the JSON object that stands for parameters in files, in the order of pylance."""
    values: dict[str, object] = {_OF_COLUMN: parameters.lance_tokenizer}
    values.update({name: getattr(parameters, name) for name in PARAMETER_NAMES})
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


def _usual_values(base: object) -> dict[str, object]:
    """Return what the base tokenizer sets unless it is given."""
    if base == _NGRAM:
        return {"stem": False, "remove_stop_words": False}
    if base == _CODE:
        parts = {"split_on_numerics": True, "preserve_original": True}
        return {"stem": False, "remove_stop_words": False, **parts}
    return {}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Values by name; those that are absent are the usual ones of ``simple``."""

    values: Mapping[str, object]

    def value(self, name: str) -> object:
        return self.values.get(name, getattr(_USUAL, name))

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if not isinstance(value, bool):
            raise InvalidRequestError(f"{name} is True or False, not {value!r}")
        return value

    def number(self, name: str) -> int:
        return checked_number(name, self.value(name), 0, _MOST)

    def choice(self, name: str, choices: tuple[str, ...], complaint: str) -> str:
        value = self.value(name)
        if not isinstance(value, str) or value not in choices:
            raise InvalidRequestError(f"{complaint} {value!r}; known: {', '.join(choices)}")
        return value


def _checked(values: Mapping[str, object]) -> TextParameters:
    wanted = _Wanted(values)
    words = wanted.value("custom_stop_words")
    parameters = TextParameters(
        base_tokenizer=wanted.choice("base_tokenizer", BASE_TOKENIZERS, "unsupported tokenizer"),
        language=wanted.choice("language", LANGUAGES, "unsupported language"),
        with_position=wanted.flag("with_position"),
        max_token_length=_limit(wanted),
        lower_case=wanted.flag("lower_case"),
        stem=wanted.flag("stem"),
        remove_stop_words=wanted.flag("remove_stop_words"),
        custom_stop_words=None if words is None else _stop_words(words),
        ascii_folding=wanted.flag("ascii_folding"),
        min_ngram_length=wanted.number("min_ngram_length"),
        max_ngram_length=wanted.number("max_ngram_length"),
        prefix_only=wanted.flag("prefix_only"),
        block_size=wanted.number("block_size"),
        split_identifiers=wanted.flag("split_identifiers"),
        split_on_numerics=wanted.flag("split_on_numerics"),
        preserve_original=wanted.flag("preserve_original"),
        index_operators=wanted.flag("index_operators"),
    )
    _check_numbers(parameters)
    return parameters


def _limit(wanted: _Wanted) -> int | None:
    name = "max_token_length"
    return None if wanted.value(name) is None else wanted.number(name)


def _stop_words(words: object) -> tuple[str, ...]:
    return tuple(checked_text("a stop word", word) for word in checked_list("stop words", words))


def _check_numbers(parameters: TextParameters) -> None:
    if parameters.block_size not in BLOCK_SIZES:
        raise InvalidRequestError(f"block_size is 128 or 256, not {parameters.block_size}")
    least, most = parameters.min_ngram_length, parameters.max_ngram_length
    if parameters.base_tokenizer == _NGRAM and not 0 < least <= most:
        raise InvalidRequestError(
            f"n-grams of {least} to {most} characters; take 1 or more, and the least first"
        )
