"""Pieces that a base tokenizer takes from a text, one after the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from lance_core.expr.token_characters import NUM_CODES, token_characters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lance_core.index.text.parameters import TextParameters

_BETWEEN, _OF_WORDS, _OF_OPERATORS = 0, 1, 2
_RUNS = re.compile(b"%c+|%c+" % (_OF_WORDS, _OF_OPERATORS))
_BLANKS = "\t\n\f\r "
_OPERATORS = "!%&*+-/:<=>?^|~"


def character_classes(parameters: TextParameters) -> NDArray[np.uint8] | None:
    """Return the class of each code point: runs of one class other than 0 are pieces.

    Returns
    -------
    NDArray[np.uint8] | None
        Shape ``(NUM_CODES,)``; None for ``raw`` and ``ngram``, whose pieces are no runs.

    Notes
    -----
    Scalar index page, section 8.3. Observed with pylance 14.0.2: only five ASCII characters are
    blanks to ``whitespace``, and operators are runs of 15 characters.
    """
    match parameters.base_tokenizer:
        case "raw" | "ngram":
            return None
        case "whitespace":
            classes = np.full(NUM_CODES, _OF_WORDS, np.uint8)
            classes[[ord(blank) for blank in _BLANKS]] = _BETWEEN
            return classes
    classes = token_characters().astype(np.uint8)
    if parameters.base_tokenizer == "code":
        classes[ord("_")] = _OF_WORDS
        if parameters.index_operators:
            classes[[ord(operator) for operator in _OPERATORS]] = _OF_OPERATORS
    return classes


def pieces(text: str, parameters: TextParameters, classes: NDArray[np.uint8] | None) -> list[str]:
    """Return the pieces of a text in their order; ``classes`` as `character_classes` gives them.

    Of ``raw`` the text is the piece, even an empty one.
    """
    if classes is None:
        return [text] if parameters.base_tokenizer == "raw" else list(_ngrams(text, parameters))
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    runs = _RUNS.finditer(classes[codes].tobytes())
    return [text[run.start() : run.end()] for run in runs]


def _ngrams(text: str, parameters: TextParameters) -> Iterator[str]:
    starts = 1 if parameters.prefix_only else len(text)
    for start in range(starts):
        for length in range(parameters.min_ngram_length, parameters.max_ngram_length + 1):
            if start + length <= len(text):
                yield text[start : start + length]
