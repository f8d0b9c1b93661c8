"""Writing the files of a segment of an inverted index, partition by partition."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa
from pyroaring import BitMap

from lance_core.index.registry import IndexKind
from lance_core.index.scalar.writers.segment_writer import SegmentWriter
from lance_core.index.text.writers.partition import PartitionBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import SegmentFiles
    from lance_core.index.text.writers.recipe import TextRecipe
    from lance_core.index.text.writers.stored_texts import StoredTexts

_FILE = "metadata.lance"
_SCHEMA = pa.schema([pa.field("deleted_fragments", pa.binary(), nullable=False)])
_BYTES_AT_ONCE = 2 << 20
"""Of texts, whose tokens take some ten times as much while they are found."""


class TextSegmentBuilder:
    """Writes one segment: documents go to a partition until it is full, and then to the next.

    A context manager, which closes temporary files.

    Parameters
    ----------
    recipe
        How tokens are made and stored.
    files
        Takes the files.
    memory_bytes
        About how much memory may be taken; what does not fit is put on disk meanwhile.
    """

    def __init__(self, recipe: TextRecipe, files: SegmentFiles, memory_bytes: int) -> None:
        self._recipe = recipe
        self._files = files
        self._memory_bytes = memory_bytes
        self._num_partitions = 0
        self._stack = ExitStack()
        self._current = self._new_partition()

    def partition_for(self, num_docs: int, num_tokens: int) -> PartitionBuilder:
        """Return the partition that takes so many documents and tokens next."""
        if self._current.num_docs > 0 and not self._current.has_room(num_docs, num_tokens):
            self._close_partition()
        return self._current

    def add_texts(self, rows: IndexedRows) -> None:
        """Take texts, or lists of them, and the names of their rows."""
        for part in rows.cut(_BYTES_AT_ONCE):
            self.partition_for(len(part), 0).add_texts(part)

    def finish(self) -> None:
        """Write what is left, and what the segment says of itself.

        Notes
        -----
        Scalar index page, section 8.2.
        """
        if self._current.num_docs > 0:
            self._close_partition()
        with self._files.create(_FILE, _SCHEMA) as writer:
            for key, value in self._recipe.segment_metadata(self._num_partitions).items():
                writer.add_schema_metadata(key, value)
            none_deleted = pa.array([BitMap().serialize()], pa.binary())
            writer.write_batch(pa.RecordBatch.from_arrays([none_deleted], schema=_SCHEMA))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _new_partition(self) -> PartitionBuilder:
        self._stack.close()
        return PartitionBuilder(self._recipe, self._memory_bytes, self._stack)

    def _close_partition(self) -> None:
        self._current.write(self._files, self._num_partitions)
        self._num_partitions += 1
        self._current = self._new_partition()


def text_segment_writer(recipe: TextRecipe) -> SegmentWriter:
    """Return what writes segments of rows, named by their row ids."""

    def write(rows: Iterable[IndexedRows], files: SegmentFiles, memory_bytes: int) -> None:
        write_texts(recipe, (), rows, files, memory_bytes)

    return SegmentWriter(IndexKind.INVERTED, "row_id", recipe.details, write)


def write_texts(
    recipe: TextRecipe,
    stored: Iterable[StoredTexts],
    rows: Iterable[IndexedRows],
    files: SegmentFiles,
    memory_bytes: int,
) -> None:
    """Write the files of a segment with documents of others, and behind them those of rows.

    Parameters as `TextSegmentBuilder`.
    """
    with TextSegmentBuilder(recipe, files, memory_bytes) as builder:
        for segment in stored:
            segment.add_to(builder)
        for piece in rows:
            builder.add_texts(piece)
        builder.finish()
