"""Exact search for several queries at once that scores only vectors whose codes come near.

Codes are a fourth of the vectors, and of most vectors the first half of them is enough. What is
found equals what a scan of the vectors finds, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.kernels.compile import kernel, warmup
from lance_core.kernels.distance import (
    COSINE,
    L2,
    exact_distance,
    inner_product,
    score_float_run,
)
from lance_core.kernels.exact_batch import table_of
from lance_core.kernels.memory import (
    address_of,
    bytes_at,
    float32_at,
    prefetch,
    prefetch_bytes,
    uint32_at,
    uint64_at,
)
from lance_core.kernels.sq_distance import squared_code_gap
from lance_core.kernels.topk import TopRows, distance_of, offer_rows
from lance_core.kernels.vector_codes import (
    FIRST_PART,
    LARGEST_CODE,
    code_scale,
    largest_miss,
    squared_length,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BLOCK_ROWS = 1024
_STATE_WORDS = 2
_FLOAT_BYTES = 4
_ORDINAL_BYTES = 4
_ROWS_AHEAD = 4
_AHEAD_BYTES = 2048
# Blocks that are scored whole after one of which most vectors came near.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 4, 64
_NO_LIMIT = np.int32(0x7FFF_FFFF)
# What float32 sums are wrong by, see `reach_of`, twice over; and float64 ones, many times over.
_ROUNDING = 2.0**-22
_SMALLEST = 1e-44
_HAIR = 1e-9
_LARGEST_PRODUCT = 1e37  # far from what float32 cannot hold


def scan_coded_pages(
    pages: NDArray[np.int64],
    grids: NDArray[np.float64],
    queries: NDArray[np.float32],
    metric: int,
    words: NDArray[np.uint64],
    tops: Sequence[TopRows],
) -> None:
    """Offer every row of some pages of vectors to the top rows of each query.

    Parameters
    ----------
    pages
        Shape ``(n, 7)``, C-contiguous and writable: where the vectors of a page (float32) lie one
        after the other, how many there are, the ordinal of the first, where their ordinals lie
        (uint32; 0 = they count up from the first), where the codes of their first dimensions lie
        (0 = there are no codes), where the rest, and which grid these have.
    grids
        Shape ``(g, 4)``: start and step of each grid, the largest distance that any vector has from
        its codes, and the largest squared length of a vector.
    queries
        Shape ``(m, d)``, C-contiguous and writable.
    metric
        Code of `lance_core.kernels.distance`; not hamming.
    words
        Dense bitset over ordinals; only rows whose bit is set are kept.
    tops
        One for each query. The nearer their bounds are, the fewer vectors are scored.
    """
    lowers = np.array([top.lower for top in tops], np.float32)
    table = table_of(tops)
    _scan(pages, grids, queries, metric, address_of(words), len(words), table, lowers)


@kernel
def _scan(
    pages: NDArray[np.int64],
    grids: NDArray[np.float64],
    queries: NDArray[np.float32],
    metric: int,
    words_address: int,
    num_words: int,
    tops: NDArray[np.int64],
    lowers: NDArray[np.float32],
) -> None:
    words = uint64_at(words_address, num_words)
    num_queries, width = queries.shape
    part = min(width, FIRST_PART)
    codes = np.empty((num_queries, width), np.int16)
    misses, reaches = np.empty(num_queries, np.float64), np.empty((num_queries, 2), np.float64)
    pauses = np.zeros((num_queries, 2), np.int64)
    pauses[:, 1] = _SHORTEST_PAUSE
    distances, ordinals = np.empty(_BLOCK_ROWS, np.float32), np.empty(_BLOCK_ROWS, np.uint32)
    places, gaps = np.empty(_BLOCK_ROWS, np.int32), np.empty(_BLOCK_ROWS, np.int32)
    coded_for = np.int64(-1)
    for page in range(len(pages)):
        vectors, num_rows, first_ordinal, its_ordinals, its_codes, its_rest, grid = pages[page]
        start, step, error, longest = grids[grid]
        if its_codes != 0 and grid != coded_for:
            coded_for = grid
            for q in range(num_queries):
                misses[q] = error + encode_query(queries[q], metric, start, step, codes[q])
                reaches[q] = reach_of(queries[q], metric, longest)
        for first in range(0, num_rows, _BLOCK_ROWS):
            count = min(_BLOCK_ROWS, num_rows - first)
            block = vectors + first * width * _FLOAT_BYTES
            first_codes, rest_codes = its_codes + first * part, its_rest + first * (width - part)
            for q in range(num_queries):
                state = uint64_at(tops[q, 2], _STATE_WORDS)
                limit = _NO_LIMIT
                if its_codes != 0 and pauses[q, 0] == 0:
                    worst = distance_of(state[1])
                    limit = largest_gap(worst, reaches[q], misses[q], step)
                near = find_near(
                    first_codes, rest_codes, count, codes[q], limit, pauses[q], places, gaps
                )
                score_places(block, count, places[:near], queries[q], metric, distances)
                if its_ordinals == 0:
                    for i in range(near):
                        ordinals[i] = first_ordinal + first + places[i]
                else:
                    listed = uint32_at(its_ordinals + first * _ORDINAL_BYTES, count)
                    for i in range(near):
                        ordinals[i] = listed[places[i]]
                keys = uint64_at(tops[q, 0], tops[q, 1])
                offer_rows(
                    distances[:near], ordinals[:near], words, keys, state, tops[q, 3], lowers[q]
                )


@kernel
def find_near(
    first_codes: int,
    rest_codes: int,
    count: int,
    query: NDArray[np.int16],
    limit: np.int32,
    pause: NDArray[np.int64],
    places: NDArray[np.int32],
    gaps: NDArray[np.int32],
) -> int:
    """Write the places of those of ``count`` rows that may be near; return how many these are.

    ``pause`` says for how many blocks more codes are not looked at, and how many it will be the
    next time that most rows are near.
    """
    near = near_rows(first_codes, count, query, limit, places, gaps)
    if limit == _NO_LIMIT:
        pause[0] = max(0, pause[0] - 1)
        return near
    if len(query) > FIRST_PART:
        near = nearer_rows(rest_codes, query[FIRST_PART:], limit, places[:near], gaps)
    if 2 * near > count:
        pause[0] = pause[1]
        pause[1] = min(2 * pause[1], _LONGEST_PAUSE)
    else:
        pause[1] = _SHORTEST_PAUSE
    return near


@kernel
def encode_query(
    query: NDArray[np.float32], metric: int, start: float, step: float, codes: NDArray[np.int16]
) -> float:
    """Write the codes of a query; return its distance from them, infinite if it cannot be coded."""
    scale = code_scale(query, metric)
    if not scale > 0:
        return np.inf
    square = 0.0
    for j in range(len(query)):
        number = np.float64(query[j]) * scale
        code = (number - start) / step + 0.5
        # Written so that NaN becomes 0.
        codes[j] = np.int16(min(code, float(LARGEST_CODE))) if code > 0 else np.int16(0)
        miss = number - (start + step * np.float64(codes[j]))
        square += miss * miss
    return largest_miss(np.sqrt(square), len(query), start, step)


@kernel
def reach_of(query: NDArray[np.float32], metric: int, longest: float) -> tuple[float, float]:
    """Return by what to multiply a distance, and what to add, to bound a squared l2 distance.

    Parameters
    ----------
    longest
        Squared length that no vector exceeds; only dot looks at it.

    Notes
    -----
    A sum of ``d`` float32 products is wrong by less than ``d * 2^-23`` of the sum of their
    magnitudes, in whatever order they are added; numbers next to zero lose some of 1e-45 besides.
    """
    slack = (len(query) + 16) * _ROUNDING
    if metric == COSINE:
        return 2.0, 2 * slack
    if metric == L2:
        return 1 + slack, len(query) * _SMALLEST
    square = squared_length(query)
    largest_product = np.sqrt(longest * square)
    if not largest_product < _LARGEST_PRODUCT:
        return 2.0, np.inf
    return 2.0, (longest + square) * (1 + _HAIR) - 2 + 2 * slack * (1 + largest_product)


@kernel
def largest_gap(
    worst: np.float32, reach: NDArray[np.float64], miss: float, step: float
) -> np.int32:
    """Return the largest squared gap of codes of a vector that may be as near as ``worst``.

    Parameters
    ----------
    worst
        The largest distance of use.
    reach
        What `reach_of` gave.
    miss
        Upper bound of the distances of query and vector from their codes, added up.
    """
    if reach[1] == np.inf:
        return _NO_LIMIT
    square = np.float64(worst) * reach[0] + reach[1]
    if not square >= 0:
        return np.int32(-1)
    gap = ((np.sqrt(square) + miss) / step) ** 2 * (1 + _HAIR) + 1
    return np.int32(gap) if gap < _NO_LIMIT else _NO_LIMIT


@kernel
def near_rows(
    address: int,
    count: int,
    query: NDArray[np.int16],
    limit: np.int32,
    places: NDArray[np.int32],
    gaps: NDArray[np.int32],
) -> int:
    """Find rows whose codes of the first dimensions have a gap of at most ``limit``.

    Returns how many of ``count`` rows these are, and writes their places and gaps. Without a limit
    these are all, and the codes are not looked at.
    """
    near = 0
    if limit == _NO_LIMIT:
        for i in range(count):
            places[i] = i
        return count
    if len(query) < FIRST_PART:
        for i in range(count):
            gap = squared_code_gap(bytes_at(address + i * len(query), len(query)), query)
            places[near] = i
            near += int(gap <= limit)
        return near
    for i in range(count):
        row = address + i * FIRST_PART
        prefetch(row + _AHEAD_BYTES)
        places[near] = i
        gaps[near] = part_gap(row, query)
        near += int(gaps[near] <= limit)
    return near


@kernel
def nearer_rows(
    address: int,
    query: NDArray[np.int16],
    limit: np.int32,
    places: NDArray[np.int32],
    gaps: NDArray[np.int32],
) -> int:
    """Keep those of ``places`` whose gap over all dimensions is at most ``limit``.

    Parameters
    ----------
    address
        Where the codes of the dimensions but the first lie.
    query
        Those of the query.
    gaps
        The gap over the first dimensions of each place.
    """
    width = len(query)
    near = 0
    for i in range(len(places)):
        row = address + int(places[i]) * width
        if i + _ROWS_AHEAD < len(places):
            prefetch_bytes(address + int(places[i + _ROWS_AHEAD]) * width, width)
        gap = gaps[i]
        done = 0
        while done + FIRST_PART <= width and gap <= limit:
            gap = np.int32(gap + part_gap(row + done, query[done:]))
            done += FIRST_PART
        if done < width and gap <= limit:
            rest = width - done
            gap = np.int32(gap + squared_code_gap(bytes_at(row + done, rest), query[done:]))
        places[near] = places[i]
        near += int(gap <= limit)
    return near


@kernel
def part_gap(row: int, query: NDArray[np.int16]) -> np.int32:
    """Return the squared gap of the dimensions from an address on, as many as are taken at once."""
    codes = bytes_at(row, FIRST_PART)
    total = np.int32(0)
    for j in range(FIRST_PART):
        gap = np.int16(np.int16(codes[j]) - query[j])
        total = np.int32(total + np.int32(np.int32(gap) * np.int32(gap)))
    return total


@kernel
def score_places(
    address: int,
    count: int,
    places: NDArray[np.int32],
    query: NDArray[np.float32],
    metric: int,
    distances: NDArray[np.float32],
) -> None:
    """Write the distances of the vectors at some places of a run of ``count``, ascending."""
    width = len(query)
    query_norm = np.float32(np.sqrt(inner_product(query, query)) if metric == COSINE else 0)
    if len(places) == count:
        score_float_run(address, count, query, query_norm, metric, distances)
        return
    row_bytes = width * _FLOAT_BYTES
    for i in range(len(places)):
        if i + _ROWS_AHEAD < len(places):
            ahead = address + int(places[i + _ROWS_AHEAD]) * row_bytes
            prefetch_bytes(ahead, row_bytes)
        vector = float32_at(address + int(places[i]) * row_bytes, width)
        distances[i] = exact_distance(vector, query, query_norm, metric)


@warmup
def _warm() -> None:
    vectors, codes = np.ones((300, 80), np.float32), np.zeros((300, 80), np.uint8)
    place = address_of(codes)
    pages = np.array([[address_of(vectors), 300, 0, 0, place, place, 0]], np.int64)
    words, grids = np.full(5, 2**64 - 1, np.uint64), np.array([[0.0, 1.0, 9.0, 80.0]])
    scan_coded_pages(pages, grids, vectors[:1].copy(), L2, words, [TopRows(1, 300)])
