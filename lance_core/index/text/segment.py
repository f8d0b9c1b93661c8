"""An opened segment of an inverted index, whatever release wrote it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyroaring import BitMap

from lance_core.errors import CorruptFileError, ObjectNotFoundError
from lance_core.index.segment_source import SegmentSource
from lance_core.index.stored_columns import stored_column
from lance_core.index.text.documents import Documents
from lance_core.index.text.legacy import RowPostings
from lance_core.index.text.parameters import read_parameters
from lance_core.index.text.partition import TextPartition
from lance_core.index.text.postings import BlockPostings
from lance_core.kernels.text_postings import SMALL_BLOCK
from lance_core.row_set import bitmap_from_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.file.reader import LanceFileReader
    from lance_core.index.text.parameters import TextParameters
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexMetadata

_METADATA_FILE = "metadata.lance"
_MOST_PARTITIONS = 1 << 16
_MOST_PARTITION_ID = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class TextSegment:
    """The small part of a segment's files, and means to read more.

    Shared by all threads and all versions that have the segment.

    Parameters
    ----------
    source
        Where its files are.
    parameters
        How its tokens were made.
    partitions
        Its partitions, each with tokens and documents of its own.
    deleted_fragments
        Fragments whose rows are no longer part of the index. Shared: do not change it.
    """

    source: SegmentSource
    parameters: TextParameters
    partitions: tuple[TextPartition, ...]
    deleted_fragments: BitMap

    @property
    def num_docs(self) -> int:
        """Documents of all partitions, deleted rows among them."""
        return sum(each.num_docs for each in self.partitions)

    @property
    def has_positions(self) -> bool:
        """Whether phrases can be looked for, whatever `parameters` say."""
        return all(each.has_positions for each in self.partitions)

    def total_tokens(self) -> int:
        """Return the sum of the lengths of all documents; old files have to be read for it."""
        return sum(each.documents.total_tokens() for each in self.partitions)

    @property
    def nbytes(self) -> int:
        """Memory held, without what is in the cache by itself."""
        return sum(each.nbytes for each in self.partitions)

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""
        for each in self.partitions:
            each.watch_growth(told)


def open_text_segment(folder: Place, metadata: IndexMetadata, cache: ByteCache) -> TextSegment:
    """Open a segment: reads the ends of its files, and no dictionary yet.

    Parameters
    ----------
    folder
        Where its files lie, as ``Snapshot.index_place`` tells.
    metadata
        What the manifest says.
    cache
        The session's, which keeps all that is read.

    Raises
    ------
    UnusableSegmentError
        The format is not known here: search the rows without it.
    CorruptFileError
        A file is missing, or contradicts the format.

    Notes
    -----
    Scalar index page, 8.1 and 8.2: what is there tells the format, not the numbers of versions.
    """
    source = SegmentSource(folder, metadata, cache)
    return cache.get_or_load(source.key("text segment"), lambda: _open(source))


def _open(source: SegmentSource) -> TextSegment:
    try:
        reader = source.open_if_present(_METADATA_FILE)
    except ObjectNotFoundError:
        return _open_legacy(source)
    told = reader.schema.metadata
    parameters = read_parameters(told.get("params", "{}"), reader.path)
    partitions = [
        _open_partition(source, partition_id, told) for partition_id in _partition_ids(reader)
    ]
    return TextSegment(source, parameters, tuple(partitions), _deleted_fragments(reader))


def _open_partition(
    source: SegmentSource, partition_id: int, told: Mapping[str, str]
) -> TextPartition:
    tokens = source.open(f"part_{partition_id}_tokens.lance")
    documents = Documents.open(source, f"part_{partition_id}_docs.lance", partition_id)
    file = source.open(f"part_{partition_id}_invert.lance")
    postings = BlockPostings.of(file, told, len(documents))
    block_size = postings.layout.block_size
    return TextPartition(source, partition_id, tokens, postings, documents, block_size)


def _open_legacy(source: SegmentSource) -> TextSegment:
    tokens = source.open("tokens.lance")
    parameters = read_parameters(tokens.schema.metadata.get("tokenizer", "{}"), tokens.path)
    documents = Documents.open(source, "docs.lance", 0, in_row_order=True)
    postings = RowPostings.of(source.open("invert.lance"), documents)
    partition = TextPartition(source, 0, tokens, postings, documents, SMALL_BLOCK)
    return TextSegment(source, parameters, (partition,), BitMap())


def _partition_ids(reader: LanceFileReader) -> list[int]:
    told = reader.schema.metadata.get("partitions", "")
    try:
        ids = json.loads(told)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(reader.path, '"partitions" is no list') from error
    if not isinstance(ids, list) or len(ids) > _MOST_PARTITIONS:
        raise CorruptFileError(reader.path, '"partitions" is no list of some numbers')
    are_ids = all(type(each) is int and 0 <= each <= _MOST_PARTITION_ID for each in ids)
    if not are_ids or len(set(ids)) < len(ids):
        raise CorruptFileError(reader.path, '"partitions" has what is no number, or repeats')
    return ids


def _deleted_fragments(reader: LanceFileReader) -> BitMap:
    if reader.num_rows == 0:
        return BitMap()
    column = stored_column(reader, "deleted_fragments", [pa.binary(), pa.large_binary()])
    (stored,) = reader.read([column], [(0, 1)])
    if stored.null_count > 0:
        raise CorruptFileError(reader.path, "deleted_fragments is null")
    return bitmap_from_bytes(stored[0].as_py(), reader.path)
