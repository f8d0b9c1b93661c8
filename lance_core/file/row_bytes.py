"""How much memory the rows of an array take, by which reading and writing cut pieces."""

from __future__ import annotations

import pyarrow as pa


def row_bytes(array: pa.Array) -> int:
    """Return the bytes that the rows of an array take, without those of its dictionaries.

    Dictionaries do not get smaller when rows are cut off.
    """
    if isinstance(array, pa.ExtensionArray):
        return row_bytes(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return int(array.indices.nbytes)
    if isinstance(array, pa.StructArray):
        return len(array) // 8 + sum(
            row_bytes(array.field(i)) for i in range(array.type.num_fields)
        )
    if isinstance(array, pa.ListArray | pa.LargeListArray) and len(array) > 0:
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        return 4 * len(array) + row_bytes(array.values.slice(first, last - first))
    return int(array.nbytes)
