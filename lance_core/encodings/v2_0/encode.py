"""Values -> one page of a 2.0 file: an array encoding and its buffers (file format, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.choose_numbers import CODECS, codec_of
from lance_core.encodings.choose_strings import choose_strings
from lance_core.encodings.fsst import Fsst, compressed
from lance_core.encodings.hints import Hints
from lance_core.encodings.leaf_types import dictionary_types
from lance_core.encodings.values import (
    BOOL_BITS,
    AllNull,
    FixedSizeLists,
    FixedWidth,
    Indexed,
    Packed,
    Variable,
)
from lance_core.errors import UnsupportedFeatureError
from lance_core.proto import encodings20_pb2 as pb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.values import Validity, Values

_END_BITS = 64
_BYTE = 8
_OFFSET_BITS = 32
_FOR_SYMBOLS = ("string", "binary")
"""FSST of strings with wide offsets makes pylance panic."""
_NO_HINTS = Hints()


@dataclass(frozen=True, slots=True, eq=False)
class EncodedArray:
    """A page ready to be written.

    Attributes
    ----------
    encoding
        The message at its root.
    buffers
        Those it names, in order.
    """

    encoding: pb.ArrayEncoding
    buffers: tuple[NDArray[np.uint8], ...]


def encode_array(
    values: Values, column: str, logical_type: str, hints: Hints = _NO_HINTS
) -> EncodedArray:
    """Encode values with their nulls.

    Parameters
    ----------
    values
        At least one.
    column
        Its name, for errors.
    logical_type
        The field's type string; says how wide the indices of dictionaries are.
    hints
        Compression that is asked for; strings take it, all else is kept as it is.

    Raises
    ------
    UnsupportedFeatureError
        Packed structs with other children than numbers, a dictionary of as many items as its
        indices can tell apart, and nulls besides, or values of no bytes.
    """
    encoder = _Encoder(column, logical_type, hints)
    encoding = encoder.encode(values)
    return EncodedArray(encoding, tuple(encoder.buffers))


def encode_lists(ends: NDArray[np.uint64], validity: Validity, num_items: int) -> EncodedArray:
    """Encode the offsets of lists; their elements are pages of another column.

    Parameters
    ----------
    ends
        Shape ``(n,)``: where each list ends among the elements of the page.
    validity
        Which lists are valid; null ones have no elements.
    num_items
        Number of elements.
    """
    encoder = _Encoder("", "")
    adjustment = num_items + 1
    offsets = encoder.ends(ends, validity, adjustment)
    lists = pb.List(offsets=offsets, null_offset_adjustment=adjustment, num_items=num_items)
    return EncodedArray(pb.ArrayEncoding(list=lists), tuple(encoder.buffers))


def encode_few_strings(positions: NDArray[np.uint8], items: Variable) -> EncodedArray:
    """Encode strings of few values: positions count from 1, and 0 is null."""
    encoder = _Encoder("", "")
    indices = encoder.flat(positions, _BYTE)
    dictionary = pb.Dictionary(
        indices=_no_nulls(indices),
        items=encoder.encode(items),
        num_dictionary_items=items.num_values,
    )
    return EncodedArray(pb.ArrayEncoding(dictionary=dictionary), tuple(encoder.buffers))


class _Encoder:
    """Gathers the buffers of one page; messages name them by their number."""

    def __init__(self, column: str, logical_type: str, hints: Hints = _NO_HINTS) -> None:
        self.buffers: list[NDArray[np.uint8]] = []
        self._column = column
        self._logical_type = logical_type
        self._hints = hints

    def encode(self, values: Values) -> pb.ArrayEncoding:
        """Encode values and what is inside them."""
        if isinstance(values, AllNull):
            return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
        if isinstance(values, Variable):
            return self._strings(values)
        if isinstance(values, Indexed):
            return self._dictionary(values)
        if isinstance(values, Packed):
            return self._packed(values)
        return self._nullable(values)

    def flat(self, data: NDArray[np.uint8], bits: int) -> pb.ArrayEncoding:
        """Add a buffer of values side by side."""
        return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=self._buffer(data)))

    def ends(
        self, ends: NDArray[np.uint64], validity: Validity, adjustment: int
    ) -> pb.ArrayEncoding:
        """Add end offsets; those of nulls are larger by ``adjustment``."""
        if validity is not None:
            ends = ends + ~validity * np.uint64(adjustment)
        return _no_nulls(self.flat(ends.view(np.uint8), _END_BITS))

    def _nullable(self, values: FixedWidth | FixedSizeLists) -> pb.ArrayEncoding:
        if isinstance(values, FixedWidth) and values.bits == 0:
            return self._no_bytes(values)
        if values.validity is None:
            return _no_nulls(self._without_nulls(values))
        validity = self.flat(np.packbits(values.validity, bitorder="little"), BOOL_BITS)
        some = pb.Nullable.SomeNull(validity=validity, values=self._without_nulls(values))
        return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))

    def _no_bytes(self, values: FixedWidth) -> pb.ArrayEncoding:
        """Encode values of a type of no bytes: pylance panics at others than nulls."""
        if values.validity is None or bool(values.validity.any()):
            raise UnsupportedFeatureError(
                f"column {self._column!r}: 2.0 files hold no values of no bytes but nulls; write"
                " version 2.2"
            )
        return self.encode(AllNull(values.num_values))

    def _without_nulls(self, values: FixedWidth | FixedSizeLists) -> pb.ArrayEncoding:
        if isinstance(values, FixedSizeLists):
            lists = pb.FixedSizeList(dimension=values.dimension, items=self.encode(values.items))
            return pb.ArrayEncoding(fixed_size_list=lists)
        data = values.data
        if values.bits == BOOL_BITS:
            data = np.packbits(data, bitorder="little")
        return self.flat(data, values.bits)

    def _strings(self, values: Variable) -> pb.ArrayEncoding:
        is_asked_for = self._hints.compression == "fsst" and self._logical_type in _FOR_SYMBOLS
        if not is_asked_for or values.offsets[0] == values.offsets[-1]:
            return self._binary(values)
        chosen = choose_strings(values, _OFFSET_BITS, self._hints, zipped=False).encoding
        if not isinstance(chosen, Fsst):
            return self._binary(values)
        codes = replace(compressed(values, chosen.table), validity=values.validity)
        fsst = pb.Fsst(binary=self._binary(codes), symbol_table=chosen.table.to_bytes())
        return pb.ArrayEncoding(fsst=fsst)

    def _binary(self, values: Variable) -> pb.ArrayEncoding:
        first, last = int(values.offsets[0]), int(values.offsets[-1])
        adjustment = last - first + 1
        ends = (values.offsets[1:] - first).view(np.uint64)
        indices = self.ends(ends, values.validity, adjustment)
        binary = pb.Binary(
            indices=indices, bytes=self._bytes(values.data[first:last]), null_adjustment=adjustment
        )
        return pb.ArrayEncoding(binary=binary)

    def _bytes(self, data: NDArray[np.uint8]) -> pb.ArrayEncoding:
        scheme = self._hints.compression
        if scheme not in CODECS or len(data) == 0:
            return self.flat(data, _BYTE)
        unit = codec_of(scheme, self._hints.compression_level).compress(data.data)
        encoding = self.flat(np.frombuffer(unit, np.uint8), _BYTE)
        encoding.flat.compression.scheme = scheme
        return encoding

    def _dictionary(self, values: Indexed) -> pb.ArrayEncoding:
        """Encode a dictionary field, whose nulls are an item of the dictionary."""
        indices, items = values.indices, values.items
        if values.validity is not None:
            indices = np.where(values.validity, indices, items.num_values)
            items = _with_null(items, self._column)
        _, bits = dictionary_types(self._logical_type)
        if items.num_values > 1 << bits:
            raise UnsupportedFeatureError(
                f"column {self._column!r}: {bits}-bit indices cannot tell {items.num_values - 1}"
                " items and null apart in a 2.0 file; use wider indices"
            )
        narrow = indices.astype(f"u{bits // _BYTE}").view(np.uint8)
        dictionary = pb.Dictionary(
            indices=_no_nulls(self.flat(narrow, bits)),
            items=self.encode(items),
            num_dictionary_items=items.num_values,
        )
        return pb.ArrayEncoding(dictionary=dictionary)

    def _packed(self, values: Packed) -> pb.ArrayEncoding:
        """Put the children of each row side by side."""
        inner, tables = [], []
        for child in values.children:
            if not isinstance(child, FixedWidth) or child.bits == BOOL_BITS:
                raise UnsupportedFeatureError(
                    f"column {self._column!r}: packed structs of 2.0 files hold numbers only;"
                    " drop lance-encoding:packed from its metadata"
                )
            buffer = pb.Buffer(buffer_index=0)
            flat = pb.ArrayEncoding(flat=pb.Flat(bits_per_value=child.bits, buffer=buffer))
            inner.append(_no_nulls(flat))
            tables.append(child.data.reshape(values.num_values, child.value_bytes))
        if values.validity is not None:
            raise UnsupportedFeatureError(
                f"column {self._column!r}: 2.0 files cannot hold null structs; fill them, or write"
                " version 2.1 or later"
            )
        rows = np.concatenate(tables, axis=1).reshape(-1)
        packed = pb.PackedStruct(inner=inner, buffer=self._buffer(rows))
        return pb.ArrayEncoding(packed_struct=packed)

    def _buffer(self, data: NDArray[np.uint8]) -> pb.Buffer:
        self.buffers.append(data)
        return pb.Buffer(buffer_index=len(self.buffers) - 1)


def _no_nulls(encoding: pb.ArrayEncoding) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=encoding)))


def _with_null(items: Values, column: str) -> FixedWidth | Variable:
    """Append a null to the items of a dictionary."""
    validity = np.arange(items.num_values + 1) < items.num_values
    if isinstance(items, Variable):
        return Variable(np.append(items.offsets, items.offsets[-1:]), items.data, validity)
    if isinstance(items, FixedWidth):
        data = np.append(items.data, np.zeros(items.value_bytes, np.uint8))
        return replace(items, data=data, num_values=items.num_values + 1, validity=validity)
    raise UnsupportedFeatureError(f"column {column!r}: 2.0 dictionaries hold numbers or strings")
