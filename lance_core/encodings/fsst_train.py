"""Choosing the symbols of FSST.

As Boncz, Neumann and Leis, "FSST: Fast Random Access String Compression" (VLDB 2020), describe it:
generation by generation a sample is compressed, and the symbols, and pairs of symbols that met,
which would have saved most become the next table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.fsst import SymbolTable, matcher_of
from lance_core.kernels.fsst_encode import (
    LITERAL,
    NUM_TOKENS,
    WORD_BYTES,
    count_tokens,
)
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.values import Variable


_STRIDES = (8, 4, 2, 1, 1)
"""Early generations need to see but one string in so many."""
_MAX_SYMBOLS = 255
_CONSIDERED = 1024
_CODES = 256
_FEWEST = 2
"""Symbols that occur less often in the sample are not worth a code."""
_LITERAL_COST = 2
_PREFIX_BYTES = 3
_MAX_ALIKE = 16
"""Symbols that begin with the same three bytes, which a matcher tries one after another."""


def train(sample: Variable) -> SymbolTable:
    """Return the table for strings like those of ``sample``; some tens of KiB are enough."""
    symbols, lengths = np.empty(0, np.uint64), np.empty(0, np.uint8)
    pairs = np.zeros(NUM_TOKENS * NUM_TOKENS, np.int32)
    for stride in _STRIDES:
        part = sample.take(np.arange(0, sample.num_values, stride, dtype=np.int64))
        symbols, lengths = _next_generation(part, symbols, lengths, pairs)
    padded = np.zeros(_CODES, np.uint64), np.zeros(_CODES, np.uint8)
    padded[0][: len(symbols)], padded[1][: len(lengths)] = symbols, lengths
    return SymbolTable(*padded, is_identity=False)


def _next_generation(
    sample: Variable,
    symbols: NDArray[np.uint64],
    lengths: NDArray[np.uint8],
    pairs: NDArray[np.int32],
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return what saves most; ``pairs`` is room for counts, zeros before and after."""
    singles = np.zeros(NUM_TOKENS, np.int32)
    met = np.empty(len(sample.data), np.int32)
    matcher = matcher_of(symbols, lengths)
    data = address_of(sample.data)
    num_met = count_tokens(address_of(matcher), data, sample.offsets, singles, pairs, met)
    token_symbols = np.zeros(NUM_TOKENS, np.uint64)
    token_lengths = np.ones(NUM_TOKENS, np.int64)
    token_symbols[: len(symbols)], token_lengths[: len(symbols)] = symbols, lengths
    token_symbols[LITERAL:] = np.arange(_CODES)
    single = np.flatnonzero(singles >= _FEWEST)
    pair = met[:num_met].astype(np.int64)
    counts = pairs[pair]
    pairs[pair] = 0
    pair, counts = pair[counts >= _FEWEST], counts[counts >= _FEWEST]
    first, second = pair // NUM_TOKENS, pair % NUM_TOKENS
    pair_lengths = token_lengths[first] + token_lengths[second]
    fits = pair_lengths <= WORD_BYTES
    first, second = first[fits], second[fits]
    shifts = (8 * token_lengths[first]).astype(np.uint64)
    joined = token_symbols[first] | token_symbols[second] << shifts
    return _most_useful(
        np.concatenate((token_symbols[single], joined)),
        np.concatenate((token_lengths[single], pair_lengths[fits])),
        np.concatenate((singles[single], counts[fits])),
    )


def _most_useful(
    symbols: NDArray[np.uint64], lengths: NDArray[np.int64], counts: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return the symbols that save most, the longest first."""
    order = np.lexsort((lengths, symbols))
    symbols, lengths, counts = symbols[order], lengths[order], counts[order]
    is_new = np.ones(len(symbols), np.bool_)
    is_new[1:] = (symbols[1:] != symbols[:-1]) | (lengths[1:] != lengths[:-1])
    starts = np.flatnonzero(is_new)
    counts = np.add.reduceat(counts, starts) if len(starts) > 0 else counts
    symbols, lengths = symbols[starts], lengths[starts]
    # a byte without a symbol takes two
    gains = counts * np.where(lengths == 1, _LITERAL_COST * WORD_BYTES // 2, lengths)
    if len(gains) > _CONSIDERED:  # those that save least need no order
        is_good = gains >= np.partition(gains, -_CONSIDERED)[-_CONSIDERED]
        symbols, lengths, gains = symbols[is_good], lengths[is_good], gains[is_good]
    best = np.argsort(-gains, kind="stable")
    best = best[~_crowded(symbols[best], lengths[best])][:_MAX_SYMBOLS]
    best = best[np.argsort(-lengths[best], kind="stable")]
    return symbols[best], lengths[best].astype(np.uint8)


def _crowded(symbols: NDArray[np.uint64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which symbols have ``_MAX_ALIKE`` before them that begin with the same bytes."""
    alike = symbols & np.uint64((1 << 8 * _PREFIX_BYTES) - 1)
    order = np.argsort(alike, kind="stable")
    is_new = np.append(True, np.diff(alike[order]) != 0)[: len(order)]
    places = np.arange(len(order))
    firsts = np.maximum.accumulate(np.where(is_new, places, 0))
    rank = np.empty(len(order), np.int64)
    rank[order] = places - firsts
    return (rank >= _MAX_ALIKE) & (lengths >= _PREFIX_BYTES)
