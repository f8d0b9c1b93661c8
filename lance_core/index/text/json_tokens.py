"""Tokens of JSON documents: path and kind of a value, and a word of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.index.text.json_values import KINDS, TEXT, JsonValue, json_values
from lance_core.index.text.piece_tokens import Occurrences
from lance_core.index.text.token_stream import TokenStream
from lance_core.index.text.tokenizer import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lance_core.index.text.tokenizer import Tokenizer

_WORD_BITS = 32


def json_query_tokens(text: str, tokenizer: Tokenizer) -> Iterator[Token]:
    """Yield the tokens of a query: ``path,kind,value``, several with semicolons between them.

    Raises
    ------
    InvalidRequestError
        It is not of that form.

    Notes
    -----
    Observed with pylance 14.0.2: positions count the tokens that are kept.
    """
    values = [_asked(part) for part in text.split(";")]
    found = (
        (each.prefix, word)
        for each in values
        for word in (_words(each, tokenizer) if each.kind == TEXT else [each.value])
    )
    for position, (prefix, word) in enumerate(found):
        yield Token(prefix + word, position, len(prefix))


def _asked(part: str) -> JsonValue:
    path, kind, value = (*part.split(",", 2), None, None)[:3]
    if path is None or kind not in KINDS or value is None:
        raise InvalidRequestError(
            'JSON documents are searched by "path,kind,value", several of them with ";" between,'
            f" where the kind is one of {', '.join(KINDS)}; not by {part!r}"
        )
    return JsonValue(path, kind, value)


def _words(value: JsonValue, tokenizer: Tokenizer) -> Iterator[str]:
    return (token.text for token in tokenizer.each_token(value.value))


def token_stream(tokenizer: Tokenizer) -> TokenStream:
    """Return what makes tokens of texts, or of JSON documents where they are that."""
    if tokenizer.parameters.lance_tokenizer == "json":
        return JsonTokenStream(tokenizer)
    return TokenStream(tokenizer)


class JsonTokenStream(TokenStream):
    """Makes tokens of arrays of JSON documents; see ``TokenStream``.

    Texts in documents are cut by another stream, all of an array together.

    Parameters
    ----------
    tokenizer
        Of the index.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self._words = TokenStream(tokenizer)
        self._prefixes: dict[str, int] = {}
        self._ids_of_parts: dict[int, int] = {}

    @property
    def nbytes(self) -> int:
        """About the memory held."""
        return super().nbytes + self._words.nbytes

    def add(self, texts: pa.Array) -> Occurrences:
        """Return the tokens of documents; a null has none. Errors as `json_values`."""
        stored = texts.storage if isinstance(texts, pa.ExtensionArray) else texts
        documents: list[int] = []
        values: list[JsonValue] = []
        for place, document in enumerate(stored.to_pylist()):
            own = [] if document is None else list(json_values(document))
            documents += [place] * len(own)
            values += own
        owners, keys = self._parts(values)
        rows = np.array(documents, np.int32)[owners]
        firsts = np.searchsorted(rows, rows)
        positions = (np.arange(len(rows)) - firsts).astype(np.int32)
        return Occurrences(rows, self._numbers_of(keys), positions)

    def _parts(self, values: Sequence[JsonValue]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which value each token is of, ascending, and prefix and word as one number."""
        are_texts = np.array([each.kind == TEXT for each in values], np.bool_)
        (of_texts,), (of_others,) = np.nonzero(are_texts), np.nonzero(~are_texts)
        texts = [each.value for each in values if each.kind == TEXT]
        found = self._words.add(pa.array(texts, pa.large_string()))
        others = self._words.ids_of([each.value for each in values if each.kind != TEXT])
        owners = np.concatenate([of_texts[found.texts], of_others])
        words = np.concatenate([found.token_ids, others]).astype(np.int64)
        prefixes = np.array([self._prefix(each) for each in values], np.int64)
        order = np.argsort(owners, kind="stable")
        return owners[order], prefixes[owners[order]] << _WORD_BITS | words[order]

    def _prefix(self, value: JsonValue) -> int:
        return self._prefixes.setdefault(value.prefix, len(self._prefixes))

    def _numbers_of(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the number of the token of each pair, new ones in the order of the pairs."""
        distinct, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
        spelt = list(self._prefixes)
        for at in np.argsort(firsts):
            key = int(distinct[at])
            if key not in self._ids_of_parts:
                word = self._words.tokens[key & ((1 << _WORD_BITS) - 1)]
                (number,) = self.ids_of([spelt[key >> _WORD_BITS] + word]).tolist()
                self._ids_of_parts[key] = number
        numbers = np.array([self._ids_of_parts[key] for key in distinct.tolist()], np.int32)
        return numbers[places]
