"""Rows that a bound below their distance does not rule out: scored by their extra codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_core.kernels.compile import kernel
from lance_core.kernels.memory import float32_at, prefetch, prefetch_bytes, uint32_at
from lance_core.kernels.rq_extra import sum_fields
from lance_core.kernels.rq_heap import push
from lance_core.kernels.topk import distance_of, pack_key
from lance_core.kernels.uncounted import uncounted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.kernels.rq_query import Terms

_BATCH_ROWS = 64
_FLOAT_BYTES = 4


class ExtraCodes(NamedTuple):
    """Where the extra codes of some rows lie, and how they are read.

    ``codes`` is the address of ``row_bytes`` per row, of which ``fields`` make ``num_bits`` per
    dimension; ``add`` and ``scale`` are the addresses of float32 factors.
    """

    codes: int
    add: int
    scale: int
    row_bytes: int
    num_bits: int
    fields: NDArray[np.int64]


@kernel(ordered=True)
def view_codes(codes: ExtraCodes) -> ExtraCodes:
    """Return the same with views that are not counted."""
    return ExtraCodes(
        codes.codes,
        codes.add,
        codes.scale,
        codes.row_bytes,
        codes.num_bits,
        uncounted(codes.fields),
    )


@kernel(ordered=True)
def list_candidates(
    bounds: NDArray[np.float32],
    ordinals: NDArray[np.uint32],
    words: NDArray[np.uint64],
    worst: np.float32,
    places: NDArray[np.int64],
) -> int:
    """Write the places of the rows that may be kept, at most 64; return how many they are.

    A bound that is not a number rules nothing out.
    """
    is_any = False
    for i in range(len(bounds)):
        is_any |= not bounds[i] >= worst
    if not is_any:
        return 0
    found = 0
    for i in range(len(bounds)):
        places[found] = i
        ordinal = ordinals[i]
        bit = words[ordinal >> np.uint32(6)] >> np.uint64(ordinal & np.uint32(63))
        found += int(bit & np.uint64(1)) & int(not bounds[i] >= worst)
    return found


@kernel(ordered=True)
def offer_candidates(
    bounds: NDArray[np.float32],
    products: NDArray[np.float32],
    ordinals: NDArray[np.uint32],
    words: NDArray[np.uint64],
    extra: ExtraCodes,
    weights: NDArray[np.float32],
    total: np.float32,
    terms: Terms,
    keys: NDArray[np.uint64],
    state: NDArray[np.uint64],
    k: int,
    lower: np.float32,
) -> None:
    """Offer rows to the heap in ``keys``, reading the extra codes of those that may be kept.

    Parameters
    ----------
    bounds, products, ordinals
        Shape ``(n,)``, in the order of the file. Products are those of the rotated query with sign
        codes.
    weights
        Of the extra codes' fields.
    total
        The sum over the rotated query.
    keys, state, k, lower
        Those of a `TopRows`, as `lance_core.kernels.rq_heap.open_heap` leaves them.
    """
    add = float32_at(extra.add, len(bounds))
    scale = float32_at(extra.scale, len(bounds))
    unit = np.float32(1 << extra.num_bits)  # a sign counts as much as all extra bits and one
    taken = (unit - np.float32(0.5)) * total
    places = np.empty(_BATCH_ROWS, np.int64)
    for start in range(0, len(bounds), _BATCH_ROWS):
        rows = min(_BATCH_ROWS, len(bounds) - start)
        # By address, because views of an array are counted, which costs more than these rows.
        of_batch = float32_at(bounds.ctypes.data + start * _FLOAT_BYTES, rows)
        own = uint32_at(ordinals.ctypes.data + start * _FLOAT_BYTES, rows)
        found = list_candidates(of_batch, own, words, distance_of(state[1]), places)
        for n in range(found):
            i = start + places[n]
            prefetch_bytes(extra.codes + i * extra.row_bytes, extra.row_bytes)
            prefetch(extra.add + i * _FLOAT_BYTES)
            prefetch(extra.scale + i * _FLOAT_BYTES)
        for n in range(found):
            i = start + places[n]
            if bounds[i] >= distance_of(state[1]):
                continue
            codes = sum_fields(extra.codes + i * extra.row_bytes, extra.fields, weights)
            known = terms.ratio * (add[i] - terms.origin) + terms.shift
            distance = (unit * products[i] + codes - taken) * scale[i] + known
            if distance >= lower:
                key = pack_key(distance, ordinals[i])
                if key < state[1]:
                    push(keys, state, k, key)
