"""From descriptors of blobs to their bytes, in this file and in the files beside it (4.6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.arrow_arrays import validity_bitmap
from lance_core.encodings.blocks import blocks_of
from lance_core.encodings.place import Place
from lance_core.io.scheduler import ByteRange
from lance_core.kernels.gather import join_bytes
from lance_core.schema.arrow import arrow_type
from lance_core.schema.blobs import with_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.schema.field import LanceField

_MAX_BYTES = 1 << 31
_ID_BITS = 32
_SUFFIX = ".lance"


class _Kind(IntEnum):
    """Where the bytes are: in the file, in a file shared with other blobs, in one of their own."""

    INLINE = 0
    PACKED = 1
    DEDICATED = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Descriptors:
    """Shape ``(n,)`` each; what stands under nulls is zero."""

    is_valid: NDArray[np.bool_]
    kinds: NDArray[np.uint8]
    positions: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    blob_ids: NDArray[np.uint32]


class BlobSource:
    """Reads the bytes of blobs that one file describes.

    Parameters
    ----------
    scheduler
        Reads the file and its neighbours.
    path, size
        The file.
    """

    def __init__(self, scheduler: RangeScheduler, path: str, size: int) -> None:
        self._scheduler = scheduler
        self._path = path
        self._size = size

    def with_bytes(self, field: LanceField, array: pa.Array) -> pa.Array:
        """Return an array with bytes in place of descriptors, at any depth.

        Parameters
        ----------
        field
            As `described` returns it.
        array
            Of the type of ``field``.

        Raises
        ------
        CorruptFileError
            A descriptor points outside its file.
        UnsupportedFeatureError
            A blob is kept outside the dataset, or there are more than 2 GiB of them.
        """
        if field.is_blob:
            return self._bytes(array, Place(self._path, field.name))
        kind = arrow_type(with_bytes(field))
        if kind == array.type:
            return array
        if array.offset != 0:
            array = array.take(pa.array(np.arange(len(array))))
        if pa.types.is_struct(kind):
            parts = [array.field(index) for index in range(array.type.num_fields)]
        else:
            parts = [array.values]
        children = [
            self.with_bytes(child, part) for child, part in zip(field.children, parts, strict=True)
        ]
        own = array.buffers()[: kind.num_buffers]
        return pa.Array.from_buffers(kind, len(array), own, children=children)

    def _bytes(self, array: pa.Array, place: Place) -> pa.Array:
        found = _parse(array, place)
        total = int(np.minimum(found.sizes, _MAX_BYTES).sum())
        if total > _MAX_BYTES:
            raise place.unsupported(f"{total} and more bytes of blobs in one piece")
        wanted = np.flatnonzero(found.sizes > 0)
        blocks = blocks_of(self._scheduler.read_many(self._ranges(found, wanted, place)))
        offsets = np.zeros(len(array) + 1, np.int64)
        np.cumsum(found.sizes, out=offsets[1:])
        data = np.empty(total, np.uint8)
        join_bytes(blocks.addresses, blocks.sizes, data)
        validity = None if bool(found.is_valid.all()) else found.is_valid
        buffers = [validity_bitmap(validity), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(array), buffers)

    def _ranges(
        self, found: _Descriptors, wanted: NDArray[np.int64], place: Place
    ) -> list[ByteRange]:
        ranges = []
        columns = (found.kinds, found.positions, found.sizes, found.blob_ids)
        for kind, position, size, blob_id in zip(
            *(column[wanted].tolist() for column in columns), strict=True
        ):
            path = self._path if kind == _Kind.INLINE else self._beside(blob_id)
            if kind == _Kind.INLINE and position + size > self._size:
                raise place.corrupt(
                    f"a blob of {size} bytes leaves the file of {self._size}", offset=position
                )
            ranges.append(ByteRange(path, position, position + size))
        return ranges

    def _beside(self, blob_id: int) -> str:
        """Return the path of a blob file: its name is the number, lowest bit first."""
        name = format(blob_id, f"0{_ID_BITS}b")[::-1]
        return f"{self._path.removesuffix(_SUFFIX)}/{name}.blob"


def _parse(array: pa.Array, place: Place) -> _Descriptors:
    columns = {
        field.name: child.fill_null("" if pa.types.is_string(child.type) else 0)
        for field, child in zip(array.type, array.flatten(), strict=True)
    }
    numbers = {
        name: column.to_numpy(zero_copy_only=False)
        for name, column in columns.items()
        if name != "blob_uri"
    }
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    positions, sizes = numbers["position"], numbers["size"]
    if "kind" not in numbers:
        is_valid &= (sizes > 0) | (positions == 0)
        none = np.zeros(len(array), np.uint8)
        return _Descriptors(is_valid, none, positions, sizes, none.astype(np.uint32))
    kinds = numbers["kind"]
    if len(kinds) > 0 and int(kinds.max()) > _Kind.DEDICATED:
        raise place.unsupported("blobs that are kept outside the dataset (kind 3 or 4)")
    return _Descriptors(is_valid, kinds, positions, sizes, numbers["blob_id"])
