"""Blob columns being written: the bytes go to the file or beside it, the column says where.

Two forms (file format, section 4.6): v1 of 2.0 and 2.1 files keeps all bytes in the file; v2 of
2.2 files keeps only small ones there, gathers middling ones in a sidecar and gives large ones
sidecars of their own. The limits are those of pylance 14.0.2, observed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
from lance_core.ids import FieldId
from lance_core.schema.field import LanceField

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from lance_core.file.container_writer import Span
    from lance_core.io.sink import ObjectSink
    from lance_core.io.store import ObjectStore

    class FileBuffers(Protocol):
        """Takes bytes into the file."""

        def write_buffer(self, data: memoryview) -> Span:
            """Append bytes at a multiple of 64; return where they lie."""


_MAX_INLINE_BYTES = 64 << 10
_MAX_PACKED_BYTES = 4 << 20
_SIDECAR_BYTES = 1 << 30
"""A sidecar of several blobs is closed when it has this size."""
_INLINE, _PACKED, _DEDICATED = 0, 1, 2
_NULL_POSITION = {FileVersion.V2_0: 1, FileVersion.V2_1: 1 << 16}
"""What v1 says for a null of size 0: in 2.1 the definition level 1 above 16 bits of repetition."""
_EXTENSION = "ARROW:extension:name"
_EXTENSION_METADATA = "ARROW:extension:metadata"
_BLOB_V2 = "lance.blob.v2"
_BLOB_ID_BITS = 32
_SUFFIX = ".lance"
_UNASSIGNED = FieldId(-1)

V1_TYPE = pa.struct([pa.field(name, pa.uint64(), nullable=False) for name in ("position", "size")])
V2_TYPE = pa.struct(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in (
            ("kind", pa.uint8()),
            ("position", pa.uint64()),
            ("size", pa.uint64()),
            ("blob_id", pa.uint32()),
            ("blob_uri", pa.string()),
        )
    ]
)


def descriptor_field(field: LanceField, version: FileVersion) -> LanceField:
    """Return the packed struct that a blob column of a file is made of."""
    names = {"position": "uint64", "size": "uint64"}
    if version is FileVersion.V2_2:
        names = {"kind": "uint8", **names, "blob_id": "uint32", "blob_uri": "string"}
    children = tuple(
        LanceField(_UNASSIGNED, name, kind, nullable=False) for name, kind in names.items()
    )
    kept = {
        key: value
        for key, value in field.metadata.items()
        if key not in {_EXTENSION, _EXTENSION_METADATA}
    }
    metadata = {**kept, "lance-encoding:packed": "true", "lance-encoding:blob": "true"}
    return replace(field, logical_type="struct", metadata=metadata, children=children)


class BlobWriter:
    """Writes the bytes of all blob columns of one file.

    Sidecars of single blobs are complete as soon as they are written: if the file is aborted
    afterwards they stay, named by no one, like the files of a commit that failed.
    """

    def __init__(
        self, store: ObjectStore, path: str, buffers: FileBuffers, version: FileVersion
    ) -> None:
        self._store = store
        self._folder = path.removesuffix(_SUFFIX)
        self._buffers = buffers
        self._version = version
        self._num_sidecars = 0
        self._shared: ObjectSink | None = None
        self._shared_id = 0

    def write(self, array: pa.Array, field: LanceField) -> pa.Array:
        """Write the bytes of an array and return the descriptors of its rows.

        Parameters
        ----------
        array
            Large binary, or the struct of data and URI that tables declare for blobs.
        field
            Its field.

        Raises
        ------
        TypeMismatchError
            The array is of another type.
        InvalidRequestError
            Nulls where the field allows none.
        UnsupportedFeatureError
            A row names an object elsewhere instead of holding bytes.
        """
        values = _bytes_of(array, field)
        if values.null_count > 0 and not field.nullable:
            raise InvalidRequestError(
                f"column {field.name!r} holds nulls but is declared without; declare it nullable"
                " or fill them"
            )
        if self._version is not FileVersion.V2_2:
            return self._v1(values)
        return self._v2(values)

    def finish(self) -> None:
        """Complete the sidecar under way."""
        if self._shared is not None:
            self._shared.finish()
            self._shared = None

    def abort(self) -> None:
        """Forget the sidecar under way."""
        if self._shared is not None:
            self._shared.abort()

    def _v1(self, values: pa.Array) -> pa.Array:
        spans = np.zeros((len(values), 2), np.uint64)
        for row, value in enumerate(_views(values)):
            if value is None:
                spans[row, 0] = _NULL_POSITION[self._version]
            elif len(value) > 0:
                spans[row] = self._buffers.write_buffer(value)
        columns = [pa.array(np.ascontiguousarray(column)) for column in spans.T]
        return pa.StructArray.from_arrays(columns, fields=list(V1_TYPE))

    def _v2(self, values: pa.Array) -> pa.Array:
        kinds, ids = np.zeros(len(values), np.uint8), np.zeros(len(values), np.uint32)
        spans = np.zeros((len(values), 2), np.uint64)
        for row, value in enumerate(_views(values)):
            if value is not None:
                kinds[row], ids[row], spans[row] = self._place(value)
        no_uris = pa.array(np.zeros(len(values) + 1, np.int32)).buffers()[1]
        uris = pa.StringArray.from_buffers(len(values), no_uris, pa.py_buffer(b""))
        positions, sizes = (pa.array(np.ascontiguousarray(column)) for column in spans.T)
        columns = [pa.array(kinds), positions, sizes, pa.array(ids), uris]
        mask = values.is_null() if values.null_count > 0 else None
        return pa.StructArray.from_arrays(columns, fields=list(V2_TYPE), mask=mask)

    def _place(self, value: memoryview) -> tuple[int, int, Span]:
        """Write one blob; return kind, sidecar and place."""
        if len(value) <= _MAX_INLINE_BYTES:
            return _INLINE, 0, self._buffers.write_buffer(value)
        if len(value) > _MAX_PACKED_BYTES:
            number, sink = self._sidecar()
            with sink:
                sink.write(value)
                sink.finish()
            return _DEDICATED, number, (0, len(value))
        if self._shared is not None and self._shared.size + len(value) > _SIDECAR_BYTES:
            self.finish()
        if self._shared is None:
            self._shared_id, self._shared = self._sidecar()
        start = self._shared.size
        self._shared.write(value)
        return _PACKED, self._shared_id, (start, len(value))

    def _sidecar(self) -> tuple[int, ObjectSink]:
        self._num_sidecars += 1
        number = self._num_sidecars
        name = f"{number:0{_BLOB_ID_BITS}b}"[::-1]  # least significant bit first
        return number, self._store.open_sink(f"{self._folder}/{name}.blob")


def check_blob(field: LanceField, path: str, version: FileVersion) -> None:
    """Refuse blob fields that cannot be written.

    Raises
    ------
    InvalidRequestError
        The field is no large binary, or the file's name leaves none for sidecars.
    UnsupportedFeatureError
        Blobs of the second form in a file before 2.2.
    """
    is_v2 = field.metadata.get(_EXTENSION) == _BLOB_V2
    if is_v2 and version is not FileVersion.V2_2:
        raise UnsupportedFeatureError(
            f"column {field.name!r}: {_BLOB_V2} needs file version 2.2, not {version.value}"
        )
    if not is_v2 and field.logical_type != "large_binary":
        raise InvalidRequestError(
            f"column {field.name!r}: blobs are large_binary, not {field.logical_type}; cast them"
        )
    if version is FileVersion.V2_2 and not path.endswith(_SUFFIX):
        raise InvalidRequestError(
            f"{path} holds blobs, whose sidecars lie in a folder of its name without {_SUFFIX};"
            f" let the name end in {_SUFFIX}"
        )


def _bytes_of(array: pa.Array, field: LanceField) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_struct(array.type):
        return _data_of(array, field)
    if array.type != pa.large_binary():
        raise TypeMismatchError(
            f"column {field.name!r}: blobs are large_binary, not {array.type}; cast them"
        )
    return array


def _data_of(array: pa.StructArray, field: LanceField) -> pa.Array:
    """Take the bytes out of structs of data and URI; a null in either place is a null."""
    parts = array.flatten()  # with the nulls of the structs
    data, uri = (parts[array.type.get_field_index(name)] for name in ("data", "uri"))
    if uri.null_count < len(uri):
        raise UnsupportedFeatureError(
            f"column {field.name!r} names objects elsewhere by URI; give their bytes as data"
        )
    return data


def _views(array: pa.Array) -> Iterator[memoryview | None]:
    """Yield the bytes of each value without a copy."""
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset :][: len(array) + 1].tolist()
    data = array.buffers()[2]
    whole = memoryview(b"" if data is None else data)
    valid = array.is_valid().to_pylist()
    for start, end, is_valid in zip(offsets[:-1], offsets[1:], valid, strict=True):
        yield whole[start:end] if is_valid else None
