"""How the answers of a vector query and of a text query become one (rest-api page, section 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.query.request_checks import check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RRF:
    """Reciprocal rank fusion: a row counts 1 / (k + its place, from 1) in each answer it is in."""

    k: int = 60

    def __post_init__(self) -> None:
        check_whole("k of the fusion", self.k, 1)


@dataclass(frozen=True, slots=True)
class WeightedFusion:
    """The weighted sum of what both answers say of a row, each scaled to 0 (worst) to 1 (best).

    A row that is not in an answer has 0 of it. Weights are finite, not negative, and not both 0.
    """

    vector: float
    text: float

    def __post_init__(self) -> None:
        _check_weight("vector", self.vector)
        _check_weight("text", self.text)
        if self.vector == 0 and self.text == 0:
            raise InvalidRequestError("weights of the fusion are both 0; one has to count")


Fusion = RRF | WeightedFusion


@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """The answer of one query, best first.

    Attributes
    ----------
    addresses
        Shape ``(n,)``, uint64: where rows lie, each once.
    values
        Shape ``(n,)``, float32: distances or scores, without NaN.
    """

    addresses: NDArray[np.uint64]
    values: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class FusedRows:
    """Rows of two answers, best first, ties by address.

    Attributes
    ----------
    addresses
        Shape ``(n,)``, uint64.
    relevance
        Shape ``(n,)``, float32, descending.
    vector_places, text_places
        Shape ``(n,)``, int64: places in the answers, from 0; -1 where an answer lacks the row.
    """

    addresses: NDArray[np.uint64]
    relevance: NDArray[np.float32]
    vector_places: NDArray[np.int64]
    text_places: NDArray[np.int64]

    def slice(self, start: int, stop: int | None) -> FusedRows:
        """Return the rows from one place to before another; None = to the end."""
        part = slice(start, stop)
        return FusedRows(
            self.addresses[part],
            self.relevance[part],
            self.vector_places[part],
            self.text_places[part],
        )


def fuse(nearest: RankedRows, matching: RankedRows, fusion: Fusion) -> FusedRows:
    """Return the rows of both answers, ordered by their relevance.

    Parameters
    ----------
    nearest
        Rows with their distances, which rank the better the smaller they are.
    matching
        Rows with their scores.
    fusion
        How relevance is made of both. It is summed up in float64, and rounded to float32 before
        rows are ordered, as lancedb 0.40.0 does it in the client.
    """
    addresses = np.union1d(nearest.addresses, matching.addresses)
    vector_places = _places(addresses, nearest.addresses)
    text_places = _places(addresses, matching.addresses)
    if isinstance(fusion, RRF):
        by_vector = _reciprocal(len(nearest.addresses), fusion.k)
        by_text = _reciprocal(len(matching.addresses), fusion.k)
    else:
        by_vector = fusion.vector * _scaled(-nearest.values)
        by_text = fusion.text * _scaled(matching.values)
    total = _spread(by_vector, vector_places) + _spread(by_text, text_places)
    relevance = total.astype(np.float32)
    order = np.argsort(-relevance, kind="stable")  # addresses ascend
    return FusedRows(addresses[order], relevance[order], vector_places[order], text_places[order])


def _places(rows: NDArray[np.uint64], ranked: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the place of each row in a ranking, -1 where it is not; rows ascend."""
    places = np.full(len(rows), -1, np.int64)
    places[np.searchsorted(rows, ranked)] = np.arange(len(ranked))
    return places


def _reciprocal(count: int, k: int) -> NDArray[np.float64]:
    return 1.0 / (k + np.arange(1, count + 1, dtype=np.float64))


def _scaled(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scale values, the larger the better, to 0 to 1; where all are alike each is 1."""
    if len(values) == 0:
        return np.empty(0, np.float64)
    finite = np.nan_to_num(values).astype(np.float64)
    least, most = float(finite.min()), float(finite.max())
    if least == most:
        return np.ones(len(values))
    return (finite - least) / (most - least)


def _spread(values: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the value at each place, 0 where there is none."""
    return np.append(values, 0.0)[places]  # -1 is the last


def _check_weight(name: str, weight: object) -> None:
    is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    if not is_number or not math.isfinite(float(weight)) or float(weight) < 0:  # type: ignore[arg-type]  # a number
        raise InvalidRequestError(
            f"weight {name} of the fusion is {weight!r}; give a finite number that is not negative"
        )
