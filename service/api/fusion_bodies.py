"""The ``fusion`` of a query body (rest-api sections 6 and 11a)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.query.fusion import RRF, WeightedFusion
from service.api.bodies import given_or

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.query.fusion import Fusion
    from service.api.models.text_queries import FusionBody

_DEFAULT = RRF()


def parse_fusion(body: FusionBody | None) -> Fusion:
    """Return how answers are fused; absent: by reciprocal ranks.

    Raises
    ------
    InvalidRequestError
        Members contradict one another, or a number makes no sense.
    """
    if body is None:
        return _DEFAULT
    weights = _weights(body)
    kind = given_or(body.kind, "rrf" if weights is None else "weighted")
    if kind == "rrf":
        if weights is not None:
            raise InvalidRequestError("fusion: rrf has no weights; leave out these, or kind")
        return RRF(given_or(body.k, _DEFAULT.k))
    if body.k is not None:
        raise InvalidRequestError("fusion.k: belongs to rrf; leave out this, or the weights")
    if weights is None or len(weights) != 2:  # noqa: PLR2004 - a vector and a text
        raise InvalidRequestError(
            "fusion.weights: give two numbers, what the vector and what the text counts"
        )
    return WeightedFusion(*weights)


def _weights(body: FusionBody) -> Sequence[float] | None:
    """Return the weights in either form; None where there are none."""
    named = [each for each in (body.vector, body.text) if each is not None]
    if body.weights is None:
        return named or None
    if named:
        raise InvalidRequestError("fusion: give either weights, or vector and text")
    return body.weights
