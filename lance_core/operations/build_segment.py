"""Building a segment of an index; nothing is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.parameters import VectorParameters
from lance_core.operations.build_vector_segment import build_vector_segment
from lance_core.operations.index_arguments import checked_memory, checked_progress
from lance_core.operations.indexed_column import checked_fragments, indexed_rows
from lance_core.operations.new_index import recipe_of
from lance_core.operations.progress import no_progress
from lance_core.operations.write_segment import MEMORY_BYTES, write_segment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.index.segment_files import IndexDetails, SegmentFiles
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def build_segment(
    files: TableFiles,
    snapshot: Snapshot,
    index: NewIndex,
    fragment_ids: Iterable[int] | None = None,
    *,
    model: VectorModel | None = None,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> table_pb2.IndexMetadata:
    """Write the files of a segment over some fragments, for `commit_segments` to commit.

    Any number of segments may be built at the same time, on any machine that opens the version.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are read.
    index
        What to build.
    fragment_ids
        Fragments to cover, at least one; None = all.
    model
        Of a vector index, what `train_model` returned: segments that share one can be merged.
        Without, one is trained on the fragments.
    memory_bytes
        About how much memory may be taken; what does not fit is put on disk meanwhile.
    progress
        Called with how many rows were read, and of how many; in thousandths where a model has to
        be trained, which is a half.

    Returns
    -------
    table_pb2.IndexMetadata
        The segment as a manifest describes it; can be pickled. Its files are named by no version
        until it is committed. It has none and covers nothing where there are too few vectors to
        train a model: the entry then keeps what was asked for, until `optimize_indices` finds
        enough, as with pylance.

    Raises
    ------
    InvalidRequestError
        The name is reserved, there is no such fragment, the index does not take the column, a
        parameter or the model, or an argument is none.
    UnknownColumnError
        There is no such column.
    CorruptFileError, UnsupportedFeatureError
        Rows cannot be read. No file is left.

    Notes
    -----
    Vector index page, section 1.2.
    """
    memory_bytes, progress = checked_memory(memory_bytes), checked_progress(progress)
    recipe = recipe_of(snapshot, index)
    covered = checked_fragments(snapshot, fragment_ids)
    if isinstance(recipe, VectorParameters):
        return build_vector_segment(
            files, snapshot, index, recipe, covered, model, memory_bytes, progress
        )
    if model is not None:
        raise InvalidRequestError(f"a {index.index_type} index has no model")
    rows = indexed_rows(files, snapshot, index.column, recipe.names_rows_by, covered, progress)

    def write(out: SegmentFiles) -> IndexDetails:
        recipe.write(rows, out, memory_bytes)
        return recipe.details

    field_id = snapshot.schema.field(index.column).id
    return write_segment(snapshot, index.name, field_id, covered, write)
