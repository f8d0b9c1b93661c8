"""Metadata of an Arrow field as Arrow hands it to other libraries: extension types included.

pyarrow shows the parameters of its own extension types (``arrow.uuid``,
``arrow.fixed_shape_tensor``, …) only through the C data interface.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_LENGTH = struct.Struct("=i")
_METADATA_MEMBER = 2  # of struct ArrowSchema: format, name, metadata, … all pointers

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def exported_metadata(field: pa.Field) -> dict[bytes, bytes]:
    """Return the field's metadata, with name and parameters of its extension type if it has one.

    Notes
    -----
    Arrow C data interface, ``ArrowSchema.metadata``: number of pairs, then for each key and value
    its length and bytes; lengths are 32-bit in the machine's byte order.
    """
    capsule = field.__arrow_c_schema__()  # owns the memory that is read below
    members = ctypes.cast(_pointer_of(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))
    at = members[_METADATA_MEMBER]
    if at is None:
        return {}
    (num_pairs,) = _LENGTH.unpack(ctypes.string_at(at, _LENGTH.size))
    at += _LENGTH.size
    texts: list[bytes] = []
    for _ in range(2 * num_pairs):
        (length,) = _LENGTH.unpack(ctypes.string_at(at, _LENGTH.size))
        texts.append(ctypes.string_at(at + _LENGTH.size, length))
        at += _LENGTH.size + length
    return dict(zip(texts[::2], texts[1::2], strict=True))
