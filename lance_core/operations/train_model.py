"""Training the model of a vector index on a sample of its column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.build.parameters import VectorParameters
from lance_core.index.vector.build.train import train
from lance_core.operations.index_arguments import checked_memory, checked_progress
from lance_core.operations.indexed_column import checked_fragments
from lance_core.operations.new_index import recipe_of
from lance_core.operations.progress import no_progress
from lance_core.operations.sample_vectors import sample_vectors
from lance_core.operations.write_segment import MEMORY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.index.vector.build.model import VectorModel
    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def train_model(
    files: TableFiles,
    snapshot: Snapshot,
    index: NewIndex,
    fragment_ids: Iterable[int] | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress = no_progress,
) -> VectorModel | None:
    """Learn centroids and codes; segments that share the model can be merged.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version whose rows are drawn from.
    index
        The index.
    fragment_ids
        Fragments to draw from; None = all. The number of partitions goes by their rows.
    memory_bytes
        About how much memory the sample may take; where that is less than it should have, it is
        smaller.
    progress
        Called with how far training is, and how far it may go.

    Returns
    -------
    VectorModel | None
        Can be pickled, and is the same for the same rows. None where there are too few vectors:
        none at all, or fewer than a codebook has codes.

    Raises
    ------
    InvalidRequestError
        It is no vector index, there is no such fragment, it does not take the column or a
        parameter, or an argument is none.
    UnknownColumnError
        There is no such column.
    CorruptFileError, UnsupportedFeatureError
        Rows cannot be read.

    Notes
    -----
    Vector index page, section 8.
    """
    memory_bytes, progress = checked_memory(memory_bytes), checked_progress(progress)
    parameters = recipe_of(snapshot, index)
    if not isinstance(parameters, VectorParameters):
        raise InvalidRequestError(f"a {index.index_type} index needs no model")
    covered = checked_fragments(snapshot, fragment_ids)
    sample = sample_vectors(files, snapshot, index.column, parameters, covered, memory_bytes)
    if len(sample.vectors) < parameters.least_vectors:
        return None
    return train(sample.vectors, parameters, sample.num_vectors, progress)
