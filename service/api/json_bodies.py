"""JSON answers of queries: rows for people, with what was done to find them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import orjson

from service.api.json_rows import encode_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from lance_core.query.query_result import AnswerRows

_GZIP_FROM_BYTES = 4096
_GZIP_LEVEL = 1
_GZIP_WINDOW = 31


def json_chunks(
    version: int,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch | pa.Table | AnswerRows],
    stats: Callable[[], Mapping[str, object]],
) -> Iterator[bytes]:
    """Yield the answer in pieces, one per batch; ``stats`` is asked after the last one."""
    head = orjson.dumps({"version": version, "columns": schema.names})
    yield head[:-1] + b',"rows":['
    num_rows = 0
    for batch in batches:
        if batch.num_rows > 0:
            rows = encode_rows(batch)
            yield rows if num_rows == 0 else b"," + rows
            num_rows += batch.num_rows
    yield b'],"num_rows":%d,"stats":%b}' % (num_rows, orjson.dumps(stats()))


def is_worth_gzip(num_bytes: int) -> bool:
    """Say whether a body of this size is worth the time gzip takes."""
    return num_bytes >= _GZIP_FROM_BYTES


def gzip_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks compressed, each as far as the compressor has got."""
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for chunk in chunks:
        yield compressor.compress(chunk)
    yield compressor.flush()
