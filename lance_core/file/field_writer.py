"""Rows of one top-level field -> pages of all columns below it."""

from __future__ import annotations

from itertools import chain, starmap
from typing import TYPE_CHECKING, Protocol

from lance_core.encodings.encode_levels import layer_numbers
from lance_core.encodings.encode_page import encode_pages
from lance_core.encodings.levels import Layer, Layers
from lance_core.encodings.shred import shred
from lance_core.encodings.version import FileVersion
from lance_core.file.array_pages import ArrayPages
from lance_core.file.blob_writer import descriptor_field
from lance_core.file.container_writer import FilePage
from lance_core.file.stored_arrays import stored_array
from lance_core.proto import encodings21_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lance_core.encodings.encode_page import EncodedPage
    from lance_core.encodings.shred import Leaf
    from lance_core.file.blob_writer import BlobWriter
    from lance_core.ids import ColumnIndex, FieldId
    from lance_core.schema.field import LanceField

    Columns = Mapping[FieldId, ColumnIndex]


_MAYBE_NULL = Layers((Layer.NULLABLE_ITEM,))


class FieldWriter(Protocol):
    """How a top-level field becomes pages.

    Attributes
    ----------
    stored
        The field as the file's own schema has it.
    """

    stored: LanceField

    def prepare(self, array: pa.Array) -> pa.Array:
        """Turn rows into what pages are made of; called in the order of the rows."""

    def encode(self, array: pa.Array) -> list[FilePage]:
        """Encode at least one prepared row; called by any thread, in any order."""

    def last_pages(self) -> list[FilePage]:
        """Return pages that are due when all rows are known."""


class LeafPages:
    """Pages of leaves, in 2.1 and 2.2 files."""

    def __init__(self, field: LanceField, columns: Columns, version: FileVersion) -> None:
        self.stored = field
        self._version = version
        self._owners = {node.id: node for node in field.walk() if node.id in columns}
        self._columns = columns

    def prepare(self, array: pa.Array) -> pa.Array:
        """Turn JSON text into what files keep."""
        return stored_array(array, self.stored)

    def encode(self, array: pa.Array) -> list[FilePage]:
        """Shred the rows and encode each leaf."""
        return [
            FilePage(column, page.buffers, page.layout, page.num_rows)
            for column, page in self.encoded(array)
        ]

    def encoded(self, array: pa.Array) -> list[tuple[ColumnIndex, EncodedPage]]:
        """Return the pages of each column."""
        # no name holds a leaf while the next one is made
        return list(chain.from_iterable(starmap(self._pages_of, shred(self.stored, array))))

    def _pages_of(self, field_id: FieldId, leaf: Leaf) -> list[tuple[ColumnIndex, EncodedPage]]:
        pages = encode_pages(leaf, self._owners[field_id], self._version)
        return [(self._columns[field_id], page) for page in pages]

    def last_pages(self) -> list[FilePage]:
        """There are none."""
        return []


class BlobPages:
    """Descriptors of blobs as ordinary packed structs, which ``inner`` writes.

    ``stored`` is what the schema of the file says: in 2.2 the descriptors' own field, in 2.0 the
    caller's, because there the column's encoding says that it is one of blobs.
    """

    def __init__(
        self, field: LanceField, stored: LanceField, blobs: BlobWriter, inner: FieldWriter
    ) -> None:
        self.stored = stored
        self._field = field
        self._blobs = blobs
        self._inner = inner

    def prepare(self, array: pa.Array) -> pa.Array:
        """Write the bytes."""
        return self._blobs.write(array, self._field)

    def encode(self, array: pa.Array) -> list[FilePage]:
        """Encode the descriptors."""
        return self._inner.encode(array)

    def last_pages(self) -> list[FilePage]:
        """There are none."""
        return []


class WrappedBlobPages:
    """Descriptors of blobs in a 2.1 file: a layout of its own around that of a packed struct."""

    def __init__(self, field: LanceField, blobs: BlobWriter, inner: LeafPages) -> None:
        self.stored = field
        self._blobs = blobs
        self._inner = inner

    def prepare(self, array: pa.Array) -> pa.Array:
        """Write the bytes."""
        return self._blobs.write(array, self.stored)

    def encode(self, array: pa.Array) -> list[FilePage]:
        """Encode the descriptors and wrap their layout."""
        ((column, page),) = self._inner.encoded(array)
        layers = layer_numbers(_MAYBE_NULL)
        blobs = encodings21_pb2.BlobLayout(inner_layout=page.layout, layers=layers)
        layout = encodings21_pb2.PageLayout(blob_layout=blobs)
        return [FilePage(column, page.buffers, layout, page.num_rows)]

    def last_pages(self) -> list[FilePage]:
        """There are none."""
        return []


def field_writer(
    field: LanceField, columns: Columns, version: FileVersion, blobs: BlobWriter
) -> FieldWriter:
    """Return the writer of a field that ``check_storable`` accepts."""
    is_v2_0 = version is FileVersion.V2_0
    if not field.is_blob:
        return ArrayPages(field, columns) if is_v2_0 else LeafPages(field, columns, version)
    described = descriptor_field(field, version)
    if is_v2_0:
        return BlobPages(field, field, blobs, ArrayPages(described, columns))
    inner = LeafPages(described, columns, version)
    if version is FileVersion.V2_1:
        return WrappedBlobPages(field, blobs, inner)
    return BlobPages(field, described, blobs, inner)
