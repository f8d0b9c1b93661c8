"""Search of one partition: one call of a kernel, of which long ones are cut into pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.text.text_hits import TextHits
from lance_core.index.text.weighted import num_windows
from lance_core.kernels.text_scores import (
    find_best,
    least_of,
    look_at_windows,
    score_all,
    score_windows,
)
from lance_core.kernels.text_weights import NO_POSTING
from lance_core.kernels.text_windows import (
    NUM_POSTINGS,
    add_lists,
    end_bounds,
    have_company,
    order_windows,
)
from lance_core.kernels.topk import TopRows, pack_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lance_core.index.text.text_hits import DocumentRows
    from lance_core.kernels.text_phrase import Phrase
    from lance_core.kernels.text_windows import Lists

_ALL_LIVE = np.zeros(0, np.uint64)
_LAST_DOC = (1 << 32) - 1

_STEPS = 1 << 20
"""Postings and positions of one piece of work, and lists by windows: some milliseconds."""

_LIST_STEPS = 16
"""What it costs to ask one list for one window, whether it has postings there or not."""


@dataclass(frozen=True, slots=True, eq=False)
class PartSearch:
    """What kernels need for one partition, and what keeps its memory alive.

    Parameters
    ----------
    rows
        The documents' rows.
    lists, phrase
        Of the query.
    num_positions
        Of the phrase, in all documents.
    held
        What ``lists`` and ``phrase`` point into.

    Notes
    -----
    Methods take ``check``, which is called between pieces of work and may raise to stop. A window
    of documents is never cut.
    """

    rows: DocumentRows
    lists: Lists
    phrase: Phrase
    num_positions: int
    held: tuple[object, ...]

    def best(self, k: int, least: np.float32, check: Callable[[], object]) -> TextHits:
        """Return the best ``k`` rows with scores of at least ``least``."""
        lists, phrase, live, most = self.lists, self.phrase, self._live(), self._windows_at_once()
        num_docs = len(self.rows.row_ids)
        top = TopRows(k, num_docs)
        if least > 0:
            top.state[1] = pack_key(-least, np.uint32(_LAST_DOC))
        keys, state = top.keys, top.state
        bounds = np.empty(num_windows(num_docs), np.float32)
        if self._are_many():
            self._write_bounds(bounds, check)
            order, scale = order_windows(bounds, least_of(state))
            turn = seen = 0
        else:
            order, scale, turn, seen = find_best(
                lists, phrase, live, bounds, keys, state, top.k, most
            )
        while turn < len(order):
            check()
            turn, more = look_at_windows(
                lists, phrase, live, bounds, order, scale, keys, state, top.k, turn, most
            )
            seen += more
        distances, docs = top.nearest()
        return self._hits(docs, np.float32(0) - distances, seen)

    def all(self, check: Callable[[], object]) -> TextHits:
        """Return all rows that match."""
        lists, phrase, live, most = self.lists, self.phrase, self._live(), self._windows_at_once()
        num_docs = len(self.rows.row_ids)
        room = min(num_docs, self.num_postings)
        docs, scores = np.empty(room, np.uint32), np.empty(room, np.float32)
        bounds = np.empty(num_windows(num_docs), np.float32)
        if self._are_many():
            self._write_bounds(bounds, check)
            found = window = 0
        else:
            found, window = score_all(lists, phrase, live, bounds, docs, scores, most)
        while window < len(bounds):
            check()
            found, window = score_windows(
                lists, phrase, live, bounds, docs, scores, found, window, most
            )
        return self._hits(docs[:found], scores[:found], len(bounds))

    @property
    def num_postings(self) -> int:
        """Postings of all lists."""
        return int(self.lists.table[:, NUM_POSTINGS].sum())

    def _are_many(self) -> bool:
        """Tell whether it takes long to write bounds: of long lists they are known by window."""
        return len(self.lists.table) * num_windows(len(self.rows.row_ids)) > _STEPS

    def _lists_at_once(self) -> int:
        return max(1, _STEPS // num_windows(len(self.rows.row_ids)))

    def _windows_at_once(self) -> int:
        """Return of how many windows the documents are a piece of work, as these are on average."""
        entries = self.num_postings + self.num_positions
        of_window = entries // num_windows(len(self.rows.row_ids))
        of_window += _LIST_STEPS * len(self.lists.table)
        return max(1, _STEPS // of_window)

    def _write_bounds(self, bounds: NDArray[np.float32], check: Callable[[], object]) -> None:
        """Write the bounds of windows, some lists at a time."""
        table, _, num_groups = self.lists
        bounds[:] = NO_POSTING
        reached = np.zeros(len(bounds) if num_groups > 0 else 0, np.int32)
        of_group = np.full(len(bounds) if have_company(table) else 0, NO_POSTING, np.float32)
        at_once = self._lists_at_once()
        for first in range(0, len(table), at_once):
            check()
            stop = min(first + at_once, len(table))
            add_lists(self.lists, first, stop, bounds, reached, of_group)
        end_bounds(num_groups, reached, self._live(), bounds)

    def _live(self) -> NDArray[np.uint64]:
        return _ALL_LIVE if self.rows.live is None else self.rows.live

    def _hits(self, docs: NDArray[np.uint32], scores: NDArray[np.float32], seen: int) -> TextHits:
        num_all = num_windows(len(self.rows.row_ids))
        return TextHits(self.rows.row_ids[docs], scores, self.num_postings, seen, num_all)
