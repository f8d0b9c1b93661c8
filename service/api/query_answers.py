"""Results of queries as bodies and headers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from service.api.arrow_bodies import arrow_chunks
from service.api.arrow_templates import encode_answer
from service.api.json_bodies import gzip_chunks, is_worth_gzip, json_chunks
from service.api.negotiation import Format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.query.query_result import QueryResult
    from service.api.negotiation import Encoding
    from service.api.scan_batches import ScanBatches

STATS_HEADER = "x-lance-serve-stats"
VERSION_HEADER = "x-lancedb-version"
_AT_ONCE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """Headers and body; ``rest`` yields what follows ``body`` and is None when nothing does."""

    media_type: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    rest: Iterator[bytes] | None = None


def answer_result(result: QueryResult, encoding: Encoding) -> Answer:
    """Return the answer of a query that was run as a whole."""
    stats = result.stats.to_dict()
    headers = {VERSION_HEADER: str(result.stats.version)}
    if encoding.format is Format.JSON:
        rows = result.rows
        chunks = json_chunks(result.stats.version, rows.schema, [rows], lambda: stats)
        return _json_answer(b"".join(chunks), headers, encoding)
    headers[STATS_HEADER] = orjson.dumps(stats).decode()
    return Answer(encoding.format.value, encode_answer(result.rows, encoding), headers)


def answer_scan(scan: ScanBatches, encoding: Encoding) -> Answer:
    """Return the answer of a plain query; reads until it ends or until 1 MiB is there.

    What goes wrong so far is raised here, before a status was sent. The rest is read as it is sent.
    """
    headers = {VERSION_HEADER: str(scan.version)}
    chunks = _large_pieces(_scan_chunks(scan, encoding))
    body = next(chunks)
    following = next(chunks, None)
    if following is None:
        if encoding.format is Format.JSON:
            return _json_answer(body, headers, encoding)
        return Answer(encoding.format.value, body, headers)
    rest = _chain(body, following, chunks)
    if encoding.format is Format.JSON and encoding.accepts_gzip:
        headers["content-encoding"] = "gzip"
        rest = gzip_chunks(rest)
    return Answer(encoding.format.value, b"", headers, rest)


def _scan_chunks(scan: ScanBatches, encoding: Encoding) -> Iterator[bytes]:
    if encoding.format is Format.JSON:
        return json_chunks(scan.version, scan.schema, scan, scan.stats)
    return arrow_chunks(scan.schema, scan, encoding)


def _json_answer(body: bytes, headers: dict[str, str], encoding: Encoding) -> Answer:
    if is_worth_gzip(len(body)):
        headers["vary"] = "accept-encoding"
        if encoding.accepts_gzip:
            headers["content-encoding"] = "gzip"
            body = b"".join(gzip_chunks([body]))
    return Answer(Format.JSON.value, body, headers)


def _large_pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Join chunks to pieces of about a mebibyte: each piece costs a hand-over between threads."""
    waiting: list[bytes] = []
    num_bytes = 0
    for chunk in chunks:
        waiting.append(chunk)
        num_bytes += len(chunk)
        if num_bytes >= _AT_ONCE_BYTES:
            yield b"".join(waiting)
            waiting, num_bytes = [], 0
    if waiting != []:
        yield b"".join(waiting)


def _chain(first: bytes, second: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield second
    yield from rest
