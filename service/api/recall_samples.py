"""A standing measure of recall: some of the queries are asked once more, exactly."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from queue import Full, Queue
from typing import TYPE_CHECKING

from lance_core.errors import LanceError
from lance_core.query.deadline import Deadline
from lance_core.query.request import VectorQuery
from service.api.recall import recall_of

if TYPE_CHECKING:
    from prometheus_client import Histogram

    from lance_core.dataset import Dataset
    from lance_core.query.engine import Request

_LOGGER = logging.getLogger(__name__)
_MAX_K = 1000
_TIMEOUT_S = 30.0


class RecallSamples:
    """Measures one query at a time, on a thread of its own; those that come meanwhile are left out.

    Parameters
    ----------
    rate
        Share of the queries that are measured; 0 = none, which costs nothing.
    recall
        Is told of each result.
    """

    def __init__(self, rate: float, recall: Histogram) -> None:
        self._rate = rate
        self._recall = recall
        self._due = 0.0
        self._waiting: Queue[tuple[Dataset, VectorQuery] | None] = Queue(1)
        self._is_stopped = False

    def start(self) -> None:
        """Begin to measure what is considered from now on."""
        if self._rate > 0:
            threading.Thread(target=self._work, name="recall", daemon=True).start()

    def stop(self) -> None:
        """End soon, also in the middle of a search."""
        self._is_stopped = True
        self._offer(None)

    def consider(self, dataset: Dataset, request: Request) -> None:
        """Take a query that an index has answered, if it is the turn of one.

        Only those count whose exact answer is what the caller would have wanted: single vectors, a
        bounded number of rows, all rows that pass the filter.
        """
        if self._rate == 0 or not isinstance(request, VectorQuery):
            return
        if request.num_queries > 1 or request.fast_search or not request.prefilter:
            return
        if request.k is None or request.k > _MAX_K:
            return
        self._due += self._rate
        if self._due >= 1:
            self._due -= 1
            plain = replace(request, columns=(), with_row_id=True, offset=0)
            self._offer((dataset, plain))

    def _offer(self, work: tuple[Dataset, VectorQuery] | None) -> None:
        try:
            self._waiting.put_nowait(work)
        except Full:
            return

    def _work(self) -> None:
        while not self._is_stopped:
            work = self._waiting.get()
            if work is not None:
                self._measure(*work)
            del work

    def _measure(self, dataset: Dataset, query: VectorQuery) -> None:
        try:
            found = self._row_ids(dataset, query)
            exact = self._row_ids(dataset, replace(query, use_index=False))
        except LanceError as error:
            _LOGGER.info("recall of a query could not be measured: %s", error)
            return
        self._recall.observe(recall_of(found, exact))

    def _row_ids(self, dataset: Dataset, query: VectorQuery) -> frozenset[int]:
        until_s = Deadline.after(_TIMEOUT_S).at_s
        result = dataset.run(query, Deadline(until_s, lambda: self._is_stopped))
        return frozenset(result.table["_rowid"].to_pylist())
