"""The bytes that a first search for words cannot do without, told from the files of an index.

They are the manifest, what stands at the ends of the index files, the dictionary, the lengths and
row ids of all documents, and what the index holds of the words' tokens. Small values lie in chunks,
which are read as a whole together with the table of the chunks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance.file import LanceFileReader

from lance_core.cache.byte_cache import ByteCache
from lance_core.index.text.segment import open_text_segment
from lance_core.index.text.tokenizer import Tokenizer
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lance.lance import LanceBufferDescriptor, LanceFileMetadata

    from benchmarks.text_engines import TextAsk

_INDEX = "text_idx"
_FOOTER = 40
_CHUNK_ENTRY = 2
"""Bytes of the table of the chunks for each of them."""
_POSTINGS = ("_posting", "_impacts", "_length", "_max_score")
_POSITIONS = ("_compressed_position", "_position_block_offset")


def needed_bytes(path: Path, ask: TextAsk) -> int:
    """Return what a query needs of a dataset whose index has one partition."""
    snapshot = open_snapshot(RangeScheduler(open_store(str(path))))
    (metadata,) = [each for each in snapshot.indices if each.name == _INDEX]
    segment = open_text_segment(snapshot.index_place(metadata), metadata, ByteCache(64 << 20))
    (partition,) = segment.partitions
    tokens = [each.text for each in Tokenizer(segment.parameters).tokens(ask.words)]
    token_ids = sorted(set(partition.token_ids(tokens).tolist()))
    folder = path / "_indices" / str(metadata.uuid)
    ends = sum(_end(file) for file in folder.iterdir())
    (dictionary,) = folder.glob("part_*_tokens.lance")
    (docs,) = folder.glob("part_*_docs.lance")
    (postings,) = folder.glob("part_*_invert.lance")
    columns = _POSTINGS + _POSITIONS if ask.kind == "phrase" else _POSTINGS
    return (
        max(each.stat().st_size for each in (path / "_versions").iterdir())
        + ends
        + _metadata(dictionary).num_data_bytes
        + _metadata(docs).num_data_bytes
        + sum(_rows(postings, column, token_ids) for column in columns)
    )


def _rows(file: Path, column: str, rows: Sequence[int]) -> int:
    """Return what rows of a column need: no row less than its chunk, where there are chunks."""
    reader = LanceFileReader(str(file), columns=[column])
    sizes: list[int] = [
        sum(table.column(0).nbytes for table in reader.take_rows([row]).to_batches())
        for row in rows
    ]
    table, *others = _buffers(file, column)
    if len(others) == 0 or table.size > others[0].size:
        return sum(sizes)
    table_size = int(table.size)
    chunk = int(others[0].size) * _CHUNK_ENTRY // table_size
    return sum(max(size, chunk) for size in sizes) + table_size


def _end(file: Path) -> int:
    metadata = _metadata(file)
    return int(metadata.num_column_metadata_bytes + metadata.num_global_buffer_bytes + _FOOTER)


def _buffers(file: Path, column: str) -> list[LanceBufferDescriptor]:
    """Return the buffers of the first page of a column."""
    metadata = _metadata(file)
    return list(metadata.columns[metadata.schema.names.index(column)].pages[0].buffers)


def _metadata(file: Path) -> LanceFileMetadata:
    return LanceFileReader(str(file)).metadata()
