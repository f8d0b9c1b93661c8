"""Options of ``lance-serve index create`` that say how words are made of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXTS = "Texts"


def _option(name: str, text: str) -> object:
    return typer.Option(name, help=text, rich_help_panel=_TEXTS, show_default=False)


Positions = Annotated[
    bool | None,
    _option("--positions/--no-positions", "Whether phrases can be found; makes it larger."),
]
BaseTokenizer = Annotated[
    str | None,
    _option(
        "--tokenizer",
        "What the words of a text are: `simple` letters and digits, `whitespace` what is between"
        " blanks, `raw` the whole text, `ngram` parts of so many characters, `code` identifiers.",
    ),
]
Language = Annotated[
    str | None, _option("--language", "Of stems and stop words: `English`, `German` and so on.")
]
Stem = Annotated[
    bool | None, _option("--stem/--no-stem", "Whether forms of a word are the same word.")
]
StopWords = Annotated[
    bool | None,
    _option("--drop-stop-words/--keep-stop-words", "Whether words as `the` are left out."),
]
CustomStopWords = Annotated[
    list[str] | None,
    _option("--stop-word", "A word to leave out in place of those of the language; repeatable."),
]
LowerCase = Annotated[
    bool | None, _option("--lower-case/--keep-case", "Whether capitals are small letters.")
]
AsciiFolding = Annotated[
    bool | None, _option("--fold-accents/--keep-accents", "Whether `é` is `e`.")
]
MaxTokenLength = Annotated[
    int | None, _option("--max-word-bytes", "Words of so many bytes are left out; 40.")
]
MinNgram = Annotated[int | None, _option("--min-ngram", "Of `ngram`: characters at least; 3.")]
MaxNgram = Annotated[int | None, _option("--max-ngram", "Of `ngram`: characters at most; 3.")]
PrefixOnly = Annotated[
    bool | None,
    _option("--prefix-only/--all-ngrams", "Of `ngram`: only those at the beginning of a text."),
]
SplitIdentifiers = Annotated[
    bool | None,
    _option("--split-identifiers/--whole-identifiers", "Of `code`: whether parts are words too."),
]
SplitOnNumerics = Annotated[
    bool | None, _option("--split-numbers/--join-numbers", "Of `code`: whether digits are a part.")
]
PreserveOriginal = Annotated[
    bool | None,
    _option("--keep-originals/--parts-only", "Of `code`: whether what has parts is a word too."),
]
IndexOperators = Annotated[
    bool | None, _option("--operators/--no-operators", "Of `code`: whether `->` is a word.")
]
BlockSize = Annotated[
    int | None, _option("--block-size", "Rows that are stored together: 128, or 256.")
]
FormatVersion = Annotated[
    int | None, _option("--format-version", "2; 1 can be read by releases before 10.0.")
]

TEXT_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "--positions": ("with_position",),
    "--tokenizer": ("base_tokenizer",),
    "--language": ("language",),
    "--stem": ("stem",),
    "--drop-stop-words": ("remove_stop_words",),
    "--stop-word": ("custom_stop_words",),
    "--lower-case": ("lower_case",),
    "--fold-accents": ("ascii_folding",),
    "--max-word-bytes": ("max_token_length",),
    "--min-ngram": ("min_ngram_length",),
    "--max-ngram": ("max_ngram_length",),
    "--prefix-only": ("prefix_only",),
    "--split-identifiers": ("split_identifiers",),
    "--split-numbers": ("split_on_numerics",),
    "--keep-originals": ("preserve_original",),
    "--operators": ("index_operators",),
    "--block-size": ("block_size",),
    "--format-version": ("format_version",),
}
"""The parameter of the library that each option stands for."""
