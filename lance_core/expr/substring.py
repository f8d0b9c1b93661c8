"""Which texts contain another: looked for in all of them at once, as they lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OFFSETS = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}
_BYTES_AT_ONCE = 1 << 19
"""So few that they stay in the processor's cache from one pass to the next."""
_SAMPLE_BYTES = 1 << 14
_FEWEST_BYTES = 2
"""Single bytes are nearly everywhere."""


def contains(texts: pa.Array, part: str) -> pa.BooleanArray:
    """Tell which texts contain a part; null where the text is.

    Two bytes of the part, those that are rarest in the texts, are looked for in all texts at once,
    and the rest only where both are: in a third of the time of looking through text after text.

    Parameters
    ----------
    texts
        Of any type of text.
    part
        The part, in the same encoding: UTF-8.
    """
    if texts.type == pa.string_view():
        texts = texts.cast(pa.large_string())
    width, sought = _OFFSETS.get(texts.type), part.encode()
    if width is None or len(sought) < _FEWEST_BYTES or len(texts) == 0:
        return pc.match_substring(texts, pattern=part)
    offsets = np.frombuffer(texts.buffers()[1], width)[texts.offset :][: len(texts) + 1]
    data = texts.buffers()[2]
    held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    found = np.zeros(len(texts), np.bool_)
    places = _places(held[offsets[0] : offsets[-1]], np.frombuffer(sought, np.uint8)) + offsets[0]
    rows = np.searchsorted(offsets, places, side="right") - 1
    found[rows[places + len(sought) <= offsets[rows + 1]]] = True
    nulls = texts.is_null().to_numpy(zero_copy_only=False) if texts.null_count > 0 else None
    return pa.array(found, mask=nulls)


def _places(data: NDArray[np.uint8], part: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where a part begins, in texts that follow each other, shape ``(n,)``."""
    counts = np.bincount(data[:_SAMPLE_BYTES], minlength=256)[part]
    first, second = np.argsort(counts, kind="stable")[:2].tolist()
    last = len(data) - len(part) + 1
    found = [np.empty(0, np.int64)]
    for start in range(0, last, _BYTES_AT_ONCE):
        stop = min(start + _BYTES_AT_ONCE, last)
        is_there = data[start + first : stop + first] == part[first]
        is_there &= data[start + second : stop + second] == part[second]
        places = np.flatnonzero(is_there) + start
        for each in range(len(part)) if len(places) > 0 else ():
            places = places[data[places + each] == part[each]]
        found.append(places)
    return np.concatenate(found)
