"""What tokens each piece of a text becomes, as arrays by the piece's number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.text.tokenizer import Token
    from lance_core.kernels.text_pieces import Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Occurrences:
    """Where tokens occur, text by text.

    Parameters
    ----------
    texts
        Shape ``(n,)``, ascending: which of the texts.
    token_ids
        Shape ``(n,)``.
    positions
        Shape ``(n,)``, ascending within a text.
    """

    texts: NDArray[np.int32]
    token_ids: NDArray[np.int32]
    positions: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class PieceTokens:
    """Tokens of pieces, those of one after those of the other.

    Parameters
    ----------
    counts
        Shape ``(p,)``: how many tokens each piece becomes.
    widths
        Shape ``(p,)``: how many positions it takes.
    token_ids, positions
        Shape ``(t,)`` each, positions from the first of the piece.
    """

    counts: NDArray[np.int32]
    widths: NDArray[np.int32]
    token_ids: NDArray[np.int32]
    positions: NDArray[np.int32]

    def extended(self, other: PieceTokens) -> PieceTokens:
        """Return the tokens of more pieces, which follow these."""
        return PieceTokens(
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.widths, other.widths]),
            np.concatenate([self.token_ids, other.token_ids]),
            np.concatenate([self.positions, other.positions]),
        )

    def occurrences(self, pieces: Pieces, numbers: NDArray[np.int32]) -> Occurrences:
        """Return the tokens of texts whose ``pieces`` have these ``numbers``."""
        starts = np.cumsum(self.counts, dtype=np.int64) - self.counts
        if len(self.widths) == 0 or self.widths.max() <= 1:
            (kept,) = np.nonzero(self.counts[numbers])
            token_ids = self.token_ids[starts[numbers[kept]]]
            return Occurrences(pieces.texts[kept], token_ids, pieces.positions[kept])
        return self._spread(pieces, numbers, starts)

    def _spread(
        self, pieces: Pieces, numbers: NDArray[np.int32], starts: NDArray[np.int64]
    ) -> Occurrences:
        counts = self.counts[numbers]
        owners = np.repeat(np.arange(len(numbers)), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = starts[numbers[owners]] + within
        positions = self._first_positions(pieces, numbers)[owners] + self.positions[places]
        return Occurrences(pieces.texts[owners], self.token_ids[places], positions.astype(np.int32))

    def _first_positions(self, pieces: Pieces, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the position of each piece in its text, all of whose pieces are there."""
        widths = self.widths[numbers]
        before = np.cumsum(widths, dtype=np.int64) - widths
        return before - before[_firsts(pieces.texts)]


def _firsts(texts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return for each item the place of the first one of its text."""
    is_first = np.ones(len(texts), np.bool_)
    np.not_equal(texts[1:], texts[:-1], out=is_first[1:])
    places = np.where(is_first, np.arange(len(texts)), 0)
    return np.maximum.accumulate(places)


def piece_tokens(
    found: Sequence[tuple[Sequence[Token], int]], token_ids: Sequence[int]
) -> PieceTokens:
    """Return arrays of the tokens and width of each piece, and of all those tokens' ids."""
    return PieceTokens(
        np.array([len(tokens) for tokens, _ in found], np.int32),
        np.array([width for _, width in found], np.int32),
        np.array(token_ids, np.int32),
        np.array([token.position for tokens, _ in found for token in tokens], np.int32),
    )
