"""Tokens of texts as inverted indices have them: of queries, and of what is indexed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.index.folding import fold_to_ascii
from lance_core.index.text.base_tokenizers import character_classes, pieces
from lance_core.index.text.identifiers import identifier_parts
from lance_core.index.text.lower_case import lower
from lance_core.index.text.stemming import stemmer_of
from lance_core.index.text.stop_words import stop_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.index.text.parameters import TextParameters


@dataclass(frozen=True, slots=True)
class Token:
    """What an index looks up.

    Parameters
    ----------
    text
        As the index has it.
    position
        Which piece of the text it was, those that are left out counted; 0 for every n-gram.
    num_fixed
        How many characters at the start say where it is, and are no part of the word.
    """

    text: str
    position: int
    num_fixed: int = 0


class Tokenizer:
    """Makes tokens of texts as an index with ``parameters`` does; for one thread.

    Parameters
    ----------
    parameters
        Of the index.

    Notes
    -----
    Scalar index page, section 8.3.
    """

    def __init__(self, parameters: TextParameters) -> None:
        self.parameters = parameters
        self.classes = character_classes(parameters)
        """Class of each code point, or None: see `character_classes`."""
        self._stem = stemmer_of(parameters.language) if parameters.stem else None
        self._stop_words = _left_out(parameters)
        self._is_ngram = parameters.base_tokenizer == "ngram"

    @property
    def has_parts(self) -> bool:
        """Whether a piece of a text may become several tokens."""
        return self.parameters.base_tokenizer == "code" and self.parameters.split_identifiers

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of a text, by position.

        Examples
        --------
        >>> from lance_core.index.text.parameters import TextParameters
        >>> found = Tokenizer(TextParameters()).tokens("The quick foxes")
        >>> [(token.text, token.position) for token in found]
        [('quick', 1), ('fox', 2)]
        """
        return list(self.each_token(text))

    def each_token(self, text: str) -> Iterator[Token]:
        """Yield the tokens of a text, by position, each when it is asked for."""
        first = 0
        for piece in pieces(text, self.parameters, self.classes):
            tokens, width = self.tokens_of_piece(piece)
            for token in tokens:
                yield Token(token.text, first + token.position)
            first += width

    def tokens_of_piece(self, piece: str) -> tuple[list[Token], int]:
        """Return the tokens of one piece, positions from 0, and how many positions it takes."""
        parts = self._parts(piece)
        tokens = [
            Token(text, position)
            for part, position in parts
            if (text := self._token_text(part)) is not None
        ]
        return tokens, 0 if self._is_ngram else parts[-1][1] + 1

    def _parts(self, piece: str) -> list[tuple[str, int]]:
        if not self.has_parts:
            return [(piece, 0)]
        split_on_numerics = self.parameters.split_on_numerics
        parts = identifier_parts(piece, split_on_numerics=split_on_numerics)
        if len(parts) <= 1:
            return [(piece, 0)]  # underscores around it stay
        whole = [(piece, 0)] if self.parameters.preserve_original else []
        return [*whole, *((part, position) for position, part in enumerate(parts))]

    def _token_text(self, part: str) -> str | None:
        """Return what a part becomes, None if it is left out."""
        limit = self.parameters.max_token_length
        if limit is not None and len(part.encode()) >= limit:
            return None
        text = lower(part) if self.parameters.lower_case else part
        if self._stem is not None:
            text = self._stem(text)
        if text in self._stop_words:
            return None
        return fold_to_ascii(text) if self.parameters.ascii_folding else text


def _left_out(parameters: TextParameters) -> frozenset[str]:
    if not parameters.remove_stop_words:
        return frozenset()
    if parameters.custom_stop_words is not None:
        return frozenset(parameters.custom_stop_words)
    return stop_words(parameters.language)
