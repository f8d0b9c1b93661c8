"""The ``vector`` member of a query body, in all its forms, straight into numpy."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError, TypeMismatchError
from service.api.json_spellings import type_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_NUMBERS = frozenset((int, float))
_NAMESPACE_FORMS = ("single_vector", "multi_vector")


def parse_vectors(given: object) -> tuple[NDArray[np.float32], bool] | None:
    """Return the query vectors, shape ``(m, d)``, and whether they were given as a batch.

    Parameters
    ----------
    given
        ``[..]``, ``[[..], ..]``, ``{"single_vector": [..]}`` or ``{"multi_vector": [[..], ..]}``.

    Returns
    -------
    tuple or None
        None for null, an empty list and an empty object, as clients of Lance Namespace have to send
        something: no vector search. Numbers beyond float32 become infinities, which ``VectorQuery``
        refuses.

    Raises
    ------
    TypeMismatchError
        Something else than numbers stands where numbers belong.
    InvalidRequestError
        The vectors differ in length, or the object has none of the two forms.
    """
    listed = _unwrap(given) if isinstance(given, dict) else given
    if listed is None or listed == []:
        return None
    if not isinstance(listed, list):
        raise TypeMismatchError("vector: must be a list of numbers, or a list of such lists")
    if isinstance(listed[0], list):
        return _batch(listed), True
    _require_numbers(listed)
    return _to_array([listed]), False


def _unwrap(given: dict[str, object]) -> object:
    forms = [given[name] for name in _NAMESPACE_FORMS if given.get(name) is not None]
    if not forms and given.keys() <= set(_NAMESPACE_FORMS):
        return None
    if len(forms) != 1:
        raise InvalidRequestError(
            "vector: an object must hold either single_vector or multi_vector"
        )
    return forms[0]


def _batch(listed: list[object]) -> NDArray[np.float32]:
    vectors = [vector for vector in listed if isinstance(vector, list)]
    if len(vectors) < len(listed):
        raise TypeMismatchError("vector: lists and other values are mixed")
    _require_numbers(chain.from_iterable(vectors))
    lengths = sorted({len(vector) for vector in vectors})
    if len(lengths) > 1:
        raise InvalidRequestError(f"vector: the vectors have different lengths: {lengths}")
    return _to_array(vectors)


def _require_numbers(values: Iterable[object]) -> None:
    """Refuse what numpy would convert without a word: text, booleans and nulls."""
    others = set(map(type, values)) - _NUMBERS
    if others:
        raise TypeMismatchError(f"vector: must hold numbers only, not {type_names(others)}")


def _to_array(vectors: list[list[object]]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return np.array(vectors, dtype=np.float32)
