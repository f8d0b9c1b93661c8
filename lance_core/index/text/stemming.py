"""Stems of words: the algorithms of Snowball."""

from __future__ import annotations

from typing import TYPE_CHECKING

import snowballstemmer

if TYPE_CHECKING:
    from collections.abc import Callable


def stemmer_of(language: str) -> Callable[[str], str]:
    """Return a function that stems a word of a language, one of `LANGUAGES`.

    It keeps state, so each thread takes its own.

    Notes
    -----
    Scalar index page, section 8.3. pylance 14.0.2 has the algorithms of Snowball 3.1; older
    releases of snowballstemmer stem Dutch, German, English and others differently.

    Examples
    --------
    >>> stemmer_of("English")("running")
    'run'
    """
    stem: Callable[[str], str] = snowballstemmer.stemmer(language.lower()).stemWord
    return stem
