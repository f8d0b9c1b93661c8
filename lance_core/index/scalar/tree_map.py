"""The sets of rows that scalar index files hold: one roaring bitmap per fragment.

Unlike the treemaps of deferred compaction (`lance_core.table.treemap`) each bitmap has its length
before it, and an entry without a bitmap stands for all rows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.fragment_rows import every_offset, is_every_offset
from lance_core.row_set import bitmap_from_bytes

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lance_core.index.scalar.fragment_rows import FragmentRows

_COUNT = struct.Struct("<I")
_HEAD = struct.Struct("<II")


def decode_tree_map(data: bytes | memoryview, path: str) -> FragmentRows:
    """Decode a set of rows.

    Parameters
    ----------
    data
        The serialized set, nothing behind it.
    path
        File that the bytes came from, for the error.

    Returns
    -------
    FragmentRows
        The rows, of the fragments in the order of the bytes. An entry for all rows of a fragment is
        `every_offset`: whoever knows how many rows there are cuts it off.

    Raises
    ------
    CorruptFileError
        The bytes are no such set.

    Notes
    -----
    Scalar index page, section 1.2: the number of fragments, then for each its id, the length of a
    bitmap in the portable roaring format, and the bitmap.
    """
    view = memoryview(data)
    if len(view) < _COUNT.size:
        raise CorruptFileError(path, f"{len(view)} bytes are no set of rows")
    (count,) = _COUNT.unpack_from(view)
    rows: dict[int, BitMap] = {}
    position = _COUNT.size
    for _ in range(count):  # each takes bytes, so the count need not be believed
        if position + _HEAD.size > len(view):
            raise CorruptFileError(path, f"a set of rows of {count} fragments is cut off")
        key, length = _HEAD.unpack_from(view, position)
        position += _HEAD.size + length
        if position > len(view):
            raise CorruptFileError(path, f"the rows of fragment {key} are cut off")
        if key in rows:
            raise CorruptFileError(path, f"a set of rows names fragment {key} twice")
        rows[key] = _decode_bitmap(view[position - length : position], path)
    if position != len(view):
        raise CorruptFileError(path, f"{len(view) - position} bytes stand behind a set of rows")
    return {key: bitmap for key, bitmap in rows.items() if bitmap}


def encode_tree_map(rows: FragmentRows) -> bytes:
    """Serialize a set of rows, by ascending fragment id."""
    pieces = [_COUNT.pack(len(rows))]
    for key in sorted(rows):
        bitmap = b"" if is_every_offset(rows[key]) else rows[key].serialize()
        pieces += [_HEAD.pack(key, len(bitmap)), bitmap]
    return b"".join(pieces)


def _decode_bitmap(data: memoryview, path: str) -> BitMap:
    return every_offset() if len(data) == 0 else bitmap_from_bytes(data, path)
