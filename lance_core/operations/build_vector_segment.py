"""Building a segment of a vector index from rows of its column; nothing is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.index.segment_files import IndexDetails
from lance_core.index.vector.build.model import VectorModel
from lance_core.index.vector.build.model_form import index_details, index_type_of
from lance_core.index.vector.build.stored_parameters import asked_details, with_files
from lance_core.index.vector.build.untrained import untrained
from lance_core.operations.indexed_column import indexed_rows
from lance_core.operations.progress import halves
from lance_core.operations.train_model import train_model
from lance_core.operations.write_segment import write_segment
from lance_core.operations.write_vector_segment import write_vector_segment

if TYPE_CHECKING:
    from lance_core.index.vector.build.parameters import VectorParameters
    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.progress import Progress
    from lance_core.proto import table_pb2
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot


def build_vector_segment(
    files: TableFiles,
    snapshot: Snapshot,
    index: NewIndex,
    parameters: VectorParameters,
    covered: BitMap,
    model: VectorModel | None,
    memory_bytes: int,
    progress: Progress,
) -> table_pb2.IndexMetadata:
    """Train a model if there is none, and code all rows of some fragments.

    Parameters
    ----------
    files, snapshot, index, model, memory_bytes, progress
        As `build_segment` takes them.
    parameters
        What is asked of the index, checked.
    covered
        The fragments.

    Returns
    -------
    table_pb2.IndexMetadata
        The segment; where there are too few vectors to train a model, an entry without files.

    Raises
    ------
    InvalidRequestError
        The model is of another index.
    CorruptFileError, UnsupportedFeatureError
        Rows cannot be read. No file is left.
    """
    if model is None:
        learning, progress = halves(progress)
        model = train_model(
            files, snapshot, index, covered, memory_bytes=memory_bytes, progress=learning
        )
    field_id = snapshot.schema.field(index.column).id
    asked = asked_details(index.parameters)
    if model is None:
        found = index_details(untrained(parameters))
        details = IndexDetails(found.type_url, with_files(asked, found.value), found.index_version)
        return write_segment(snapshot, index.name, field_id, BitMap(), lambda _: details)
    _check_model(parameters, model)
    return write_vector_segment(
        snapshot,
        index.name,
        field_id,
        covered,
        model,
        asked=asked,
        rows=indexed_rows(files, snapshot, index.column, "row_id", covered, progress),
        memory_bytes=memory_bytes,
    )


def _check_model(parameters: VectorParameters, model: VectorModel) -> None:
    if not isinstance(model, VectorModel):
        raise InvalidRequestError(f"a model is what train_model returned, not {model!r}")
    column = parameters.column
    wanted = parameters.index_type, parameters.metric, column.value_type, column.dimension
    found = index_type_of(model), model.metric, model.value_type, model.dimension
    if wanted != found:
        told = [" ".join(map(str, each)) for each in (found, wanted)]
        raise InvalidRequestError(f"the model is of {told[0]}, the index of {told[1]}")
