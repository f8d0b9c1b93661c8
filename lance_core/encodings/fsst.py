"""FSST: strings as bytes that stand for symbols (file format, section 5.6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lance_core.encodings.compression import ChunkBuffer, Compression
from lance_core.encodings.values import Variable, variable
from lance_core.kernels.bitpacking import DONE
from lance_core.kernels.fsst import ESCAPE, SLACK, expand, expanded_offsets
from lance_core.kernels.fsst_encode import MATCHER_BYTES, build_matcher, compress
from lance_core.kernels.memory import address_of
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.encodings.blocks import Blocks
    from lance_core.encodings.compression import Selection
    from lance_core.encodings.place import Place
    from lance_core.encodings.values import Values

_MAGIC = 0x46535354
_CODES = 256
_SYMBOL_BYTES = 8
_TABLE_BYTES = 2312
"""Messages hold room for 256 symbols and lengths, whatever their number."""


@dataclass(frozen=True, slots=True, eq=False)
class SymbolTable:
    """Symbols, zero padded, and their lengths by code, both of shape ``(256,)``.

    ``is_identity`` says that the strings were stored as they are.
    """

    symbols: NDArray[np.uint64]
    lengths: NDArray[np.uint8]
    is_identity: bool

    @classmethod
    def parse(cls, table: bytes, place: Place) -> SymbolTable:
        """Read the table that stands in the encoding message."""
        if len(table) < _SYMBOL_BYTES:
            raise place.corrupt(f"an FSST symbol table of {len(table)} bytes")
        (header,) = struct.unpack_from("<Q", table)
        count = header & 0xFF
        if header >> 32 != _MAGIC or len(table) < _SYMBOL_BYTES * (1 + count) + count:
            raise place.corrupt("an FSST symbol table without its magic or cut off")
        symbols = np.zeros(_CODES, np.uint64)
        lengths = np.zeros(_CODES, np.uint8)
        symbols[:count] = np.frombuffer(table, "<u8", count, _SYMBOL_BYTES)
        lengths[:count] = np.frombuffer(table, np.uint8, count, _SYMBOL_BYTES * (1 + count))
        if int(lengths.max()) > _SYMBOL_BYTES or int(lengths[ESCAPE]) > 0:
            raise place.corrupt("an FSST symbol longer than 8 bytes")
        return cls(symbols, lengths, is_identity=header >> 24 & 0xFF == 0)

    def to_bytes(self) -> bytes:
        """Return the table as it stands in a message; codes with a symbol must come first."""
        count = int(np.count_nonzero(self.lengths))
        header = _MAGIC << 32 | int(not self.is_identity) << 24 | count
        table = struct.pack("<Q", header) + self.symbols[:count].astype("<u8").tobytes()
        return (table + self.lengths[:count].tobytes()).ljust(_TABLE_BYTES, b"\0")


@dataclass(frozen=True, slots=True, eq=False)
class Fsst(Compression):
    """Strings decoded by ``inner``, then expanded by the symbol table."""

    table: SymbolTable
    inner: Compression
    name: ClassVar[str] = "fsst"

    @property
    def family(self) -> object:
        """Pages with tables of their own go together: ``expanded_by`` takes many."""
        return Fsst, self.table.is_identity, self.inner.family

    def decode_chunks(
        self, buffers: Sequence[Blocks], counts: NDArray[np.int64], place: Place
    ) -> Variable:
        """Decode and expand the strings of all chunks."""
        return expanded(self.inner.decode_chunks(buffers, counts, place), self.table, place)

    def take_chunks(
        self,
        buffers: Sequence[Blocks],
        counts: NDArray[np.int64],
        selection: Selection,
        place: Place,
    ) -> Variable:
        """Expand only the strings selected."""
        values = self.inner.take_chunks(buffers, counts, selection, place)
        return expanded(values, self.table, place)

    def decode_blocks(self, blocks: Blocks, counts: NDArray[np.int64], place: Place) -> Variable:
        """Decode and expand the strings of a block."""
        return expanded(self.inner.decode_blocks(blocks, counts, place), self.table, place)

    def decode_zipped(self, values: Blocks, place: Place) -> Variable:
        """Decode and expand single strings."""
        return expanded(self.inner.decode_zipped(values, place), self.table, place)

    def message(self) -> pb.CompressiveEncoding:
        """Return the message of this encoding."""
        fsst = pb.Fsst(symbol_table=self.table.to_bytes(), values=self.inner.message())
        return pb.CompressiveEncoding(fsst=fsst)

    def encode_chunks(self, values: Values, bounds: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Write the codes of the strings as the inner encoding does."""
        return self.inner.encode_chunks(compressed(variable(values), self.table), bounds)

    def encode_blocks(self, values: Values, bounds: NDArray[np.int64]) -> ChunkBuffer:
        """Write the codes of the strings as the inner encoding does."""
        return self.inner.encode_blocks(compressed(variable(values), self.table), bounds)

    def encode_zipped(self, values: Values) -> Values:
        """Return the codes of each string."""
        return self.inner.encode_zipped(compressed(variable(values), self.table))


def matcher_of(symbols: NDArray[np.uint64], lengths: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return what finds symbols in strings; codes are positions, longer symbols come first."""
    matcher = np.zeros(MATCHER_BYTES, np.uint8)
    build_matcher(symbols, lengths, matcher)
    return matcher


def compressed(values: Variable, table: SymbolTable) -> Variable:
    """Return the codes of all strings; a table that was trained has longer symbols first."""
    if table.is_identity:
        return values
    count = int(np.count_nonzero(table.lengths))
    matcher = matcher_of(table.symbols[:count], table.lengths[:count])
    offsets = np.empty(len(values.offsets), np.int64)
    out = np.empty(2 * int(values.offsets[-1] - values.offsets[0]), np.uint8)
    compress(address_of(matcher), address_of(values.data), values.offsets, offsets, out)
    return Variable(offsets, out[: int(offsets[-1])])


def expanded(values: Values, table: SymbolTable, place: Place) -> Variable:
    """Expand all strings; nulls must be empty or hold valid codes."""
    return expanded_by(values, [table], np.zeros(values.num_values, np.int64), place)


def expanded_by(
    values: Values, tables: Sequence[SymbolTable], table_of: NDArray[np.int64], place: Place
) -> Variable:
    """Expand each string by its own table: ``table_of``, shape ``(n,)``, numbers them.

    Tables that are the identity do not go together with others.
    """
    if not isinstance(values, Variable):
        raise place.corrupt("FSST over values that are no strings")
    if tables[0].is_identity:
        return values
    symbols = np.stack([table.symbols for table in tables])
    lengths = np.stack([table.lengths for table in tables])
    offsets = np.zeros(values.offsets.shape[0], np.int64)
    if expanded_offsets(values.offsets, values.data, table_of, lengths, offsets) != DONE:
        raise place.corrupt("an FSST string has a code that its table lacks")
    data = np.empty(int(offsets[-1]) + SLACK, np.uint8)
    expand(values.offsets, values.data, table_of, symbols, lengths, address_of(data))
    return Variable(offsets, data[:-SLACK], values.validity)
