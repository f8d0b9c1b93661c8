"""Opening whatever segment answers conditions: of values, or of the words in texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.index.registry import IndexKind, classify
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.text.segment import open_text_segment
from lance_core.index.word_segment import WordSegment

if TYPE_CHECKING:
    from lance_core.cache.byte_cache import ByteCache
    from lance_core.index.scalar.segment import ScalarSegment
    from lance_core.schema.field import LanceField
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexMetadata


def open_condition_segment(
    folder: Place, metadata: IndexMetadata, cache: ByteCache, field: LanceField
) -> ScalarSegment:
    """Open a segment; parameters and errors as `open_scalar_segment`."""
    if classify(metadata) is IndexKind.INVERTED:
        return WordSegment(open_text_segment(folder, metadata, cache))
    return open_scalar_segment(folder, metadata, cache, field)
