"""Phrases in texts that no index covers: every way to go from token to token is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def have_chain(
    starts: NDArray[np.int64],
    positions: NDArray[np.int64],
    tokens: NDArray[np.int64],
    offsets: NDArray[np.int64],
    slop: int,
    found: NDArray[np.bool_],
) -> None:
    """Tell which texts have the tokens of a phrase one after the other.

    Parameters
    ----------
    starts
        Shape ``(n, m + 1)``: where the positions of each of ``m`` distinct tokens begin and end
        in each text.
    positions
        Ascending for each text and token.
    tokens, offsets
        Shape ``(q,)``, one at least: which token each one of the phrase is, and its position.
    slop
        How many positions more may be between two of them.
    found
        Shape ``(n,)``, written.
    """
    reached = np.empty(positions.shape[0], np.bool_)
    before = np.empty(positions.shape[0], np.bool_)
    for text in range(starts.shape[0]):
        first, end = starts[text, tokens[0]], starts[text, tokens[0] + 1]
        before[first:end] = True
        for place in range(1, tokens.shape[0]):
            token = tokens[place]
            own, own_end = starts[text, token], starts[text, token + 1]
            step = offsets[place] - offsets[place - 1]
            _reach(positions, before, first, end, own, own_end, step, slop, reached)
            first, end = own, own_end
            before[first:end] = reached[first:end]
        found[text] = before[first:end].any()


@kernel
def _reach(
    positions: NDArray[np.int64],
    before: NDArray[np.bool_],
    first: int,
    end: int,
    own: int,
    own_end: int,
    step: int,
    slop: int,
    reached: NDArray[np.bool_],
) -> None:
    """Tell which positions of a token lie near enough behind one of the token before.

    Positions of the token before are those from ``first`` to ``end``, of which ``before`` tells
    which count; the token's own go from ``own`` to ``own_end``.
    """
    latest = first
    for place in range(own, own_end):
        reached[place] = False
        wanted = positions[place] - step
        while latest < end and positions[latest] <= wanted:
            latest += 1
        back = latest - 1
        while back >= first and positions[back] >= wanted - slop:
            if before[back]:
                reached[place] = True
                break
            back -= 1


@warmup
def _warm() -> None:
    starts, one = np.array([[0, 1]], np.int64), np.zeros(1, np.int64)
    have_chain(starts, one, one.copy(), one.copy(), 0, np.zeros(1, np.bool_))
