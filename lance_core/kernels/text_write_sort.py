"""Where tokens occur, text by text, to posting lists: documents token by token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def count_occurrences(
    token_ids: NDArray[np.int32],
    docs: NDArray[np.uint32],
    times: NDArray[np.uint32],
    last_docs: NDArray[np.int64],
    num_postings: NDArray[np.int64],
    num_occurrences: NDArray[np.int64],
) -> None:
    """Count how many documents have each token, and how often it occurs.

    Parameters
    ----------
    token_ids, docs
        Shape ``(n,)`` each: a token and the document that has it; documents ascend for each token.
    times
        How often it has it, shape ``(n,)``, or nothing for once each.
    last_docs
        By token: the last document that had it, -1 for none. Written.
    num_postings, num_occurrences
        By token; counted up.
    """
    for index in range(token_ids.shape[0]):
        token = token_ids[index]
        num_occurrences[token] += times[index] if times.shape[0] > 0 else 1
        if last_docs[token] != docs[index]:
            last_docs[token] = docs[index]
            num_postings[token] += 1


@kernel
def place_postings(
    token_ids: NDArray[np.int32],
    docs: NDArray[np.uint32],
    times: NDArray[np.uint32],
    last_docs: NDArray[np.int64],
    behind: NDArray[np.int64],
    out_docs: NDArray[np.uint32],
    out_frequencies: NDArray[np.uint32],
) -> None:
    """Put documents where the postings of their tokens are.

    Parameters
    ----------
    token_ids, docs, times, last_docs
        As `count_occurrences` takes them; ``last_docs`` is -1 before the first call again.
    behind
        By token: where its next posting goes. Written.
    out_docs, out_frequencies
        Receive the postings.
    """
    for index in range(token_ids.shape[0]):
        token = token_ids[index]
        count = times[index] if times.shape[0] > 0 else np.uint32(1)
        if last_docs[token] != docs[index]:
            last_docs[token] = docs[index]
            place = behind[token]
            behind[token] = place + 1
            out_docs[place] = docs[index]
            out_frequencies[place] = count
        else:
            out_frequencies[behind[token] - 1] += count


@kernel
def place_positions(
    token_ids: NDArray[np.int32],
    positions: NDArray[np.int32],
    behind: NDArray[np.int64],
    out: NDArray[np.uint32],
) -> None:
    """Put positions behind those of their tokens that are there; ``behind`` is written."""
    for index in range(token_ids.shape[0]):
        place = behind[token_ids[index]]
        behind[token_ids[index]] = place + 1
        out[place] = positions[index]


@kernel
def place_run(
    counts: NDArray[np.uint32],
    values: NDArray[np.uint32],
    behind: NDArray[np.int64],
    out: NDArray[np.uint32],
) -> None:
    """Put the values of one run behind those of earlier ones, token by token.

    Parameters
    ----------
    counts
        By token: how many values it has in the run.
    values
        Of the tokens one after the other.
    behind
        By token: where its next value goes. Written.
    out
        Receives the values.
    """
    start = 0
    for token in range(counts.shape[0]):
        count, place = counts[token], behind[token]
        out[place : place + count] = values[start : start + count]
        start += count
        behind[token] = place + count


@kernel
def sum_counts(
    counts: NDArray[np.uint32], frequencies: NDArray[np.uint32], sums: NDArray[np.uint32]
) -> None:
    """Sum up the frequencies of each token's postings, of which there are ``counts``."""
    start = 0
    for token in range(counts.shape[0]):
        total = 0
        for index in range(start, start + counts[token]):
            total += frequencies[index]
        start += counts[token]
        sums[token] = total
