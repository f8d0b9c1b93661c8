"""Arrow IPC answers: the file format and the stream format, whole or in pieces."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa

from service.api.negotiation import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from service.api.negotiation import Encoding


def encode_table(table: pa.Table, encoding: Encoding) -> bytes:
    """Return a table as one Arrow IPC message sequence; no rows still give the full schema."""
    sink = pa.BufferOutputStream()
    with _writer(sink, table.schema, encoding) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def arrow_chunks(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], encoding: Encoding
) -> Iterator[bytes]:
    """Yield the same bytes in pieces, one per batch.

    When ``batches`` raises, the end marker and the footer are never yielded, so that readers see
    that the answer is incomplete.
    """
    sink = _Pieces()
    with _writer(sink, schema, encoding) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


def _writer(
    sink: pa.NativeFile | io.RawIOBase, schema: pa.Schema, encoding: Encoding
) -> pa.ipc.RecordBatchStreamWriter:
    options = pa.ipc.IpcWriteOptions(compression=encoding.compression)
    make = pa.ipc.new_file if encoding.format is Format.ARROW_FILE else pa.ipc.new_stream
    return make(sink, schema, options=options)


class _Pieces(io.RawIOBase):
    """A file that gives away what was written since the last look."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(memoryview(data))  # type: ignore[arg-type]  # pyarrow passes buffers
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken
