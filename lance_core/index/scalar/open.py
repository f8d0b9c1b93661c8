"""Opening the segments of scalar indices, each kind by its reader."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import ObjectNotFoundError
from lance_core.index.registry import IndexKind, Unusable, UnusableSegmentError, classify
from lance_core.index.scalar.bitmap import open_bitmap
from lance_core.index.scalar.bloom_filter import open_bloom_filter
from lance_core.index.scalar.btree import open_btree
from lance_core.index.scalar.label_list import open_label_list
from lance_core.index.scalar.ngram import open_ngram
from lance_core.index.scalar.segment import ScalarSource
from lance_core.index.scalar.zone_map import open_zone_map

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.index.scalar.segment import ValueSegment
    from lance_core.schema.field import LanceField
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexMetadata

_READERS: Mapping[IndexKind, Callable[[ScalarSource], ValueSegment]] = {
    IndexKind.BTREE: open_btree,
    IndexKind.BITMAP: open_bitmap,
    IndexKind.LABEL_LIST: open_label_list,
    IndexKind.NGRAM: open_ngram,
    IndexKind.ZONEMAP: open_zone_map,
    IndexKind.BLOOMFILTER: open_bloom_filter,
}


def open_scalar_segment(
    folder: Place, metadata: IndexMetadata, cache: ByteCache, field: LanceField
) -> ValueSegment:
    """Open a segment, which all versions that have it share.

    Reads the ends of its files and the small part that every query needs; the rest is read when a
    query needs it. All of it is kept in the cache.

    Parameters
    ----------
    folder
        Where its files lie, as ``Snapshot.index_place`` tells.
    metadata
        What the manifest says.
    cache
        The session's.
    field
        The column, or the part of a struct, that the index is on.

    Raises
    ------
    UnusableSegmentError
        The kind, the version, the container or a type is not supported: scan the fragments.
    CorruptFileError
        A file is missing, or contradicts the format.
    """
    source = ScalarSource(folder, metadata, cache, field)
    # A column that has changed its type has lost its indices; the type is here to be safe.
    key = source.key("scalar segment", str(source.column_type))
    return cache.get_or_load(key, lambda: _open(source))


def _open(source: ScalarSource) -> ValueSegment:
    kind = classify(source.metadata)
    if isinstance(kind, Unusable):
        raise UnusableSegmentError(kind.reason)
    if kind is IndexKind.UNTOLD:
        kind = _kind_by_files(source)
    reader = _READERS.get(kind)
    if reader is None:
        raise UnusableSegmentError(f"a {kind} index answers no condition")
    return reader(source)


def _kind_by_files(source: ScalarSource) -> IndexKind:
    """Tell the kind of a segment whose writer did not: by the files that there are."""
    is_list = pa.types.is_list(source.column_type) or pa.types.is_large_list(source.column_type)
    kinds = {
        "page_lookup.lance": IndexKind.BTREE,
        "bitmap_page_lookup.lance": IndexKind.LABEL_LIST if is_list else IndexKind.BITMAP,
    }
    for file_name, kind in kinds.items():
        with suppress(ObjectNotFoundError):
            source.open_if_present(file_name)
            return kind
    raise UnusableSegmentError("its files are of no index that answers conditions")
