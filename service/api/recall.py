"""How good the answers of an index are: searches by it against exact ones, on sampled rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import DeadlineExceededError
from lance_core.query.vector_field import find_vector_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance_core.dataset import Dataset
    from lance_core.query.deadline import Deadline
    from lance_core.query.request import VectorQuery

_SEED = 20
"""The same rows each time, so that two settings are compared by the same queries."""
_MORE = 4
"""Times as many rows are drawn, as some may have no vector."""


@dataclass(frozen=True, slots=True)
class Recall:
    """What was measured; times are of whole searches, in milliseconds.

    ``recall`` is None where no row has a vector.
    """

    column: str
    recall: float | None
    sample: int
    p50_ms: float | None
    exact_p50_ms: float | None


@dataclass(frozen=True, slots=True)
class _Search:
    """The rows that were found by one search, and how long it took."""

    row_ids: frozenset[int]
    elapsed_ms: float


def measure_recall(dataset: Dataset, query: VectorQuery, sample: int, deadline: Deadline) -> Recall:
    """Search for the neighbours of sampled rows, by the index and exactly.

    Parameters
    ----------
    dataset
        Where to search.
    query
        How, with one row id that stands for all of them. The row itself is never among its
        neighbours.
    sample
        Rows to ask for, fewer if so many have no vector or the time ends.
    deadline
        When it ends; cancellation ends it with an error.

    Raises
    ------
    InvalidRequestError
        The query does not fit the table.
    DeadlineExceededError
        Not a single row was measured until then.
    """
    schema = dataset.snapshot.schema
    column = schema.path_of(find_vector_field(schema, query.column, None).id)
    query = replace(query, column=column)
    pairs: list[tuple[_Search, _Search]] = []
    try:
        for row_id in _sampled_rows(dataset, column, sample, deadline):
            of_row = replace(query, row_ids=(row_id,))
            found = _search(dataset, of_row, deadline)
            exact = _search(dataset, replace(of_row, use_index=False), deadline)
            pairs.append((found, exact))
    except DeadlineExceededError:
        if len(pairs) == 0:
            raise
    return _summary(column, pairs)


def recall_of(found: frozenset[int], exact: frozenset[int]) -> float:
    """Return which share of the rows found exactly were found; 1 where there are none."""
    return len(found & exact) / len(exact) if len(exact) > 0 else 1.0


def _summary(column: str, pairs: Sequence[tuple[_Search, _Search]]) -> Recall:
    if len(pairs) == 0:
        return Recall(column, None, 0, None, None)
    shares = [recall_of(found.row_ids, exact.row_ids) for found, exact in pairs]
    return Recall(
        column,
        float(np.mean(shares)),
        len(pairs),
        round(median(found.elapsed_ms for found, _ in pairs), 3),
        round(median(exact.elapsed_ms for _, exact in pairs), 3),
    )


def _search(dataset: Dataset, query: VectorQuery, deadline: Deadline) -> _Search:
    deadline.check("measuring recall")
    started = time.perf_counter()
    result = dataset.run(query, deadline)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    return _Search(frozenset(result.table["_rowid"].to_pylist()), elapsed_ms)


def _sampled_rows(dataset: Dataset, column: str, sample: int, deadline: Deadline) -> Iterator[int]:
    """Yield ids of rows that have a vector."""
    num_rows = dataset.count_rows()
    deadline.check("sampling rows")
    drawn = np.random.default_rng(_SEED).choice(
        num_rows, size=min(num_rows, _MORE * sample), replace=False
    )
    rows = dataset.take(drawn, [column, "_rowid"])
    with_vector = rows.filter(rows.column(0).is_valid())
    yield from with_vector["_rowid"].to_pylist()[:sample]
