"""How the rows that parts of a text query found become those of the whole; pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.text.text_hits import NO_HITS, TextHits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def summed(must: Sequence[TextHits], should: Sequence[TextHits]) -> TextHits:
    """Return the rows of all ``must``, or if there are none of any ``should``, scores added up.

    Notes
    -----
    Scalar index page, 8.8. The order of rows is that of their ids.
    """
    row_ids = _in_all(must) if must else np.unique(_concatenated(should).row_ids)
    scores = np.zeros(len(row_ids), np.float32)
    for part in (*must, *should):
        at, found = _places(part.row_ids, row_ids)
        scores[at] += part.scores[found]
    return TextHits(row_ids, scores)


def without(hits: TextHits, others: Sequence[TextHits]) -> TextHits:
    """Leave out the rows of others."""
    kept = ~np.isin(hits.row_ids, _concatenated(others).row_ids)
    return TextHits(hits.row_ids[kept], hits.scores[kept])


def demoted(positive: TextHits, negative: TextHits, negative_boost: float) -> TextHits:
    """Take ``negative_boost`` times the score of ``negative`` off the rows of ``positive``."""
    order = np.argsort(positive.row_ids)
    row_ids, scores = positive.row_ids[order], positive.scores[order]
    at, found = _places(negative.row_ids, row_ids)
    scores[at] -= np.float32(negative_boost) * negative.scores[found]
    return TextHits(row_ids, scores)


def best_of(parts: Sequence[TextHits]) -> TextHits:
    """Return the rows of all parts, each with the best of its scores, in the order of their ids."""
    every = _concatenated(parts)
    row_ids, place = np.unique(every.row_ids, return_inverse=True)
    scores = np.full(len(row_ids), -np.inf, np.float32)
    np.maximum.at(scores, place, every.scores)
    return TextHits(row_ids, scores)


def _concatenated(parts: Sequence[TextHits]) -> TextHits:
    every = [NO_HITS, *parts]
    return TextHits(
        np.concatenate([each.row_ids for each in every]),
        np.concatenate([each.scores for each in every]),
    )


def _in_all(parts: Sequence[TextHits]) -> NDArray[np.uint64]:
    row_ids = np.sort(parts[0].row_ids)
    for part in parts[1:]:
        row_ids = np.intersect1d(row_ids, part.row_ids, assume_unique=True)
    return row_ids


def _places(
    row_ids: NDArray[np.uint64], among: NDArray[np.uint64]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where rows stand among others, which ascend, and which of them do."""
    if len(among) == 0:
        return np.empty(0, np.intp), np.zeros(len(row_ids), np.bool_)
    at = np.minimum(np.searchsorted(among, row_ids), len(among) - 1)
    found = among[at] == row_ids
    return at[found], found
