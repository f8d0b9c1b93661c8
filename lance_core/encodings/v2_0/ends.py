"""End offsets that also mark nulls: of byte strings and of lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.rows import descends
from lance_core.encodings.values import FixedWidth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.page import Page
    from lance_core.encodings.place import Place
    from lance_core.encodings.steps import ReadSteps
    from lance_core.encodings.v2_0.node import ArrayNode

_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """Where each value begins and ends and which are valid; shape ``(n,)``.

    ``spans`` is the range that the values of each piece cover together.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    validity: NDArray[np.bool_]
    spans: list[tuple[int, int]]


def read_extents(
    offsets: ArrayNode,
    null_adjustment: int,
    limit: int,
    page: Page,
    pieces: Sequence[tuple[int, int]],
    place: Place,
) -> ReadSteps[Extents]:
    """Read end offsets; a value begins where the one before ends, the first of a page at 0.

    Offsets of at least ``null_adjustment`` mark nulls and are that much too large. All must be
    ascending and at most ``limit``.
    """
    with_one_before = [(max(start - 1, 0), stop) for start, stop in pieces]
    values = yield from offsets.read(page, with_one_before, place)
    if not isinstance(values, FixedWidth) or values.bits != _BITS or null_adjustment == 0:
        raise place.corrupt("end offsets are not plain numbers of 64 bits")
    raw = values.data.view(np.uint64)
    is_null = raw >= np.uint64(null_adjustment)
    ends = np.where(is_null, raw - np.uint64(null_adjustment), raw).view(np.int64)
    return _cut(ends, ~is_null, limit, pieces, place)


def _cut(
    ends: NDArray[np.int64],
    validity: NDArray[np.bool_],
    limit: int,
    pieces: Sequence[tuple[int, int]],
    place: Place,
) -> Extents:
    """Pair each end with the one before it, piece by piece."""
    starts: list[NDArray[np.int64]] = []
    kept: list[NDArray[np.bool_]] = []
    spans: list[tuple[int, int]] = []
    stops: list[NDArray[np.int64]] = []
    position = 0
    for start, stop in pieces:
        before = 1 if start > 0 else 0
        of_piece = ends[position : position + before + stop - start]
        valid = validity[position + before : position + before + stop - start]
        position += before + stop - start
        bounds = of_piece if before == 1 else np.concatenate(([0], of_piece))
        if int(bounds[0]) < 0 or int(bounds[-1]) > limit or descends(bounds):
            raise place.corrupt(f"end offsets descend or leave the {limit} that exist")
        starts.append(bounds[:-1])
        stops.append(bounds[1:])
        kept.append(valid)
        spans.append((int(bounds[0]), int(bounds[-1])))
    return Extents(
        np.concatenate([*starts, np.empty(0, np.int64)]),
        np.concatenate([*stops, np.empty(0, np.int64)]),
        np.concatenate([*kept, np.empty(0, np.bool_)]),
        spans,
    )
