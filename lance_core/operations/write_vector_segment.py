"""Writing a segment of a vector index: rows of a column, and rows that were coded before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.index.segment_files import IndexDetails
from lance_core.index.vector.build.budget import Budget
from lance_core.index.vector.build.segment_builder import SegmentBuilder
from lance_core.index.vector.build.stored_parameters import with_files
from lance_core.index.vector.build.stored_rows import stored_rows
from lance_core.operations.write_segment import write_segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.index.scalar.writers.indexed_rows import IndexedRows
    from lance_core.index.segment_files import SegmentFiles
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.index.vector.segment import VectorSegment
    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class CodedSegment:
    """A segment whose rows go into another one of the same model as they are.

    Parameters
    ----------
    segment
        The segment.
    follow
        Returns what rows are called in the other one, and which of them it has; shape ``(n,)``.
    """

    segment: VectorSegment
    follow: Callable[[NDArray[np.uint64]], tuple[NDArray[np.uint64], NDArray[np.bool_]]]


def write_vector_segment(
    snapshot: Snapshot,
    name: str,
    field_id: int,
    covered: BitMap,
    model: VectorModel,
    *,
    asked: bytes,
    coded: Sequence[CodedSegment] = (),
    rows: Iterable[IndexedRows] = (),
    memory_bytes: int,
) -> table_pb2.IndexMetadata:
    """Write a segment; what does not fit into memory is put on disk meanwhile.

    Parameters
    ----------
    snapshot, name, field_id, covered
        As `write_segment` takes them.
    model
        The model.
    asked
        Details that say what files do not tell.
    coded
        Segments of the model.
    rows
        Rows of the column, named by their ids.
    memory_bytes
        How much memory may be taken, see `Budget`.

    Raises
    ------
    InvalidRequestError
        No build can keep to so little memory.
    UnusableSegmentError
        The rows of a segment cannot be taken over: read those of its fragments.
    LanceError
        What reading rows raises. No file is left.
    """
    Budget(memory_bytes).check(has_graphs=model.graph is not None)

    def write(out: SegmentFiles) -> IndexDetails:
        with SegmentBuilder(model, out, memory_bytes) as builder:
            for each in coded:
                _add_coded(builder, each)
            _add_fresh(builder, rows)
            found = builder.finish()
        return IndexDetails(found.type_url, with_files(asked, found.value), found.index_version)

    return write_segment(snapshot, name, field_id, covered, write)


def _add_coded(builder: SegmentBuilder, coded: CodedSegment) -> None:
    for part in stored_rows(coded.segment):
        kept = part.kept(*coded.follow(part.row_ids))
        builder.add_coded(kept.row_ids, kept.partitions, kept.columns)


def _add_fresh(builder: SegmentBuilder, rows: Iterable[IndexedRows]) -> None:
    """Add rows of the column; the last ones are not held on to while files are written."""
    for each in rows:
        builder.add(each.values, each.names)
