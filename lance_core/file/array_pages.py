"""Pages of 2.0 files, where every field owns a column: structs, lists and leaves alike."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.encodings.from_arrow import from_arrow, offsets_of, validity_of
from lance_core.encodings.hints import Hints
from lance_core.encodings.v2_0.encode import encode_array, encode_few_strings, encode_lists
from lance_core.encodings.values import Variable
from lance_core.errors import InvalidRequestError, UnsupportedFeatureError
from lance_core.file.container_writer import FilePage
from lance_core.file.stored_arrays import stored_array
from lance_core.proto import encodings20_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from lance_core.encodings.v2_0.encode import EncodedArray
    from lance_core.ids import ColumnIndex, FieldId
    from lance_core.schema.field import LanceField

_MIN_ROWS_OF_FEW = 100
_MAX_FEW = 99
_PROBED_ROWS = 1000


class ArrayPages:
    """One page per leaf and list; a struct has one page for all rows, which is written last."""

    def __init__(self, field: LanceField, columns: Mapping[FieldId, ColumnIndex]) -> None:
        self.stored = field
        self._columns = columns
        self._struct_rows: dict[ColumnIndex, int] = {}
        self._lock = threading.Lock()

    def prepare(self, array: pa.Array) -> pa.Array:
        """Turn JSON text into what files keep."""
        return stored_array(array, self.stored)

    def encode(self, array: pa.Array) -> list[FilePage]:
        """Encode the rows of the field and of all below it."""
        pages: list[FilePage] = []
        self._walk(self.stored, array, pages)
        return pages

    def last_pages(self) -> list[FilePage]:
        """Return the headers of structs: pylance reads no file in which they have two pages."""
        header = encodings20_pb2.ArrayEncoding(struct=encodings20_pb2.SimpleStruct())
        return [
            FilePage(column, (), header, rows) for column, rows in sorted(self._struct_rows.items())
        ]

    def _walk(self, field: LanceField, array: pa.Array, pages: list[FilePage]) -> None:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        _check_nulls(field, array)
        is_struct = pa.types.is_struct(array.type)
        if is_struct and not field.is_packed:
            self._struct(field, array, pages)
        elif field.owns_column:
            if len(array) > 0:
                pages.append(self._page(field, _encode_leaf(field, array), len(array)))
        else:
            self._lists(field, array, pages)

    def _struct(self, field: LanceField, array: pa.StructArray, pages: list[FilePage]) -> None:
        if array.null_count > 0:
            raise UnsupportedFeatureError(
                f"column {field.name!r}: 2.0 files cannot hold null structs; fill them, or write"
                " version 2.1 or later"
            )
        column = self._columns[field.id]
        with self._lock:  # sums do not depend on which thread comes first
            self._struct_rows[column] = self._struct_rows.get(column, 0) + len(array)
        for index, child in enumerate(field.children):
            self._walk(child, array.field(index), pages)

    def _lists(self, field: LanceField, array: pa.ListArray, pages: list[FilePage]) -> None:
        offsets, validity = offsets_of(array), validity_of(array)
        sizes = np.diff(offsets)
        if validity is not None:
            sizes = sizes * validity
        ends = np.cumsum(sizes)
        num_items = int(ends[-1]) if len(ends) > 0 else 0
        if len(array) > 0:
            lists = encode_lists(ends.view(np.uint64), validity, num_items)
            pages.append(self._page(field, lists, len(array)))
        self._walk(field.children[0], _elements(array, offsets, sizes, num_items), pages)

    def _page(self, field: LanceField, page: EncodedArray, length: int) -> FilePage:
        return FilePage(self._columns[field.id], page.buffers, page.encoding, length)


def _check_nulls(field: LanceField, array: pa.Array) -> None:
    if array.null_count > 0 and not field.nullable:
        raise InvalidRequestError(
            f"field {field.name!r} holds nulls but is declared without; declare it nullable or"
            " fill them"
        )


def _elements(
    array: pa.ListArray, offsets: NDArray[np.int64], sizes: NDArray[np.int64], num_items: int
) -> pa.Array:
    """Return the elements of valid lists: a slice, or a copy where others lie in between."""
    first = int(offsets[0])
    if int(offsets[-1]) - first == num_items:
        return array.values.slice(first, num_items)
    starts = offsets[:-1] - (np.cumsum(sizes) - sizes)
    return array.values.take(pa.array(np.repeat(starts, sizes) + np.arange(num_items)))


def _encode_leaf(field: LanceField, array: pa.Array) -> EncodedArray:
    hints = Hints.of(field.metadata, field.name)
    if field.logical_type == "string" and hints.compression is None:
        few = _few_strings(array)
        if few is not None:
            return few
    return encode_array(from_arrow(array, field.name), field.name, field.logical_type, hints)


def _few_strings(array: pa.Array) -> EncodedArray | None:
    """Encode strings by positions if there are few different ones, as pylance does."""
    if len(array) < _MIN_ROWS_OF_FEW or array.null_count == len(array):
        return None
    if len(pc.unique(array.slice(0, _PROBED_ROWS))) > _MAX_FEW:
        return None
    indexed = array.cast(pa.string()).dictionary_encode()
    if len(indexed.dictionary) > _MAX_FEW:
        return None
    positions = pc.fill_null(pc.add(indexed.indices, 1), 0).to_numpy().astype(np.uint8)
    items = from_arrow(indexed.dictionary, "")
    return encode_few_strings(positions, items) if isinstance(items, Variable) else None
