"""Building one segment of a vector index from vectors, or from rows that are coded already."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_core.errors import TypeMismatchError
from lance_core.index.vector.build.assign import assign, assign_bytes
from lance_core.index.vector.build.budget import Budget, Trimmer, trim_heaps
from lance_core.index.vector.build.encoders import encoder_of
from lance_core.index.vector.build.files import write_files
from lance_core.index.vector.build.graph import GraphBuilder
from lance_core.index.vector.build.model_form import index_details
from lance_core.index.vector.build.parameters import vector_column
from lance_core.index.vector.build.partition_rows import PartitionRows
from lance_core.index.vector.build.usable import usable_vectors
from lance_core.index.vector.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.index.segment_files import IndexDetails, SegmentFiles
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.index.vector.build.usable import UsableVectors


class SegmentBuilder:
    """Writes the files of one segment; a context manager, so that no temporary file is left.

    Parameters
    ----------
    model
        The model; given ones of other segments make segments that can be merged with them.
    out
        Where files go.
    memory_bytes
        How much memory may be taken, see `Budget`; what does not fit is put on disk meanwhile. A
        partition is held whole in any case, and so is its graph.

    Notes
    -----
    Rows come in any order, and lie in their partition by ascending row id. Vector index page,
    sections 8 and 9.
    """

    def __init__(self, model: VectorModel, out: SegmentFiles, memory_bytes: int) -> None:
        self._model = model
        self._out = out
        self._encoder = encoder_of(model)
        self._stack = ExitStack()
        self._budget = Budget(memory_bytes)
        self._rows = PartitionRows(
            self._encoder.columns, model.num_partitions, self._budget, self._stack
        )
        self._block_rows = max(self._budget.block_bytes // (4 * model.dimension), 1)
        self._trimmer = Trimmer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def add(self, column: pa.Array, row_ids: NDArray[np.uint64]) -> None:
        """Take rows of the column; those that no index holds are left out.

        Parameters
        ----------
        column
            As `usable_vectors` takes it, of the model's value type and dimension.
        row_ids
            Shape ``(n,)``.

        Raises
        ------
        TypeMismatchError
            The model is of another type or dimension.
        """
        self._check_type(column.type)
        for start in range(0, len(column), self._block_rows):
            stop = start + self._block_rows
            part = column.slice(start, self._block_rows)
            vectors = usable_vectors(part, row_ids[start:stop], self._model.metric)
            self._add_vectors(vectors)
            self._trimmer.count(part.nbytes)

    def add_coded(
        self,
        row_ids: NDArray[np.uint64],
        partitions: NDArray[np.uint32],
        columns: Mapping[str, NDArray[Any]],
    ) -> None:
        """Take rows that the same model has coded.

        Parameters
        ----------
        row_ids
            Shape ``(n,)``.
        partitions
            Shape ``(n,)``.
        columns
            As `stored_rows` gives them: by name, row after row.
        """
        self._rows.add(row_ids, partitions, columns)

    def finish(self) -> IndexDetails:
        """Write the files; return what the manifest says of the segment.

        Raises
        ------
        UnsupportedFeatureError, LimitExceededError
            There can be no such graphs.
        """
        trim_heaps()
        builder = None if self._model.graph is None else GraphBuilder(self._model)
        groups = self._rows.groups(0 if builder is None else builder.row_bytes)
        write_files(self._model, self._encoder, groups, builder, self._budget, self._out)
        trim_heaps()
        return index_details(self._model)

    def _check_type(self, column_type: pa.DataType) -> None:
        column, model = vector_column(column_type), self._model
        if (column.value_type, column.dimension) != (model.value_type, model.dimension):
            raise TypeMismatchError(
                f"the model is for vectors of {model.dimension} {model.value_type}, but the column"
                f" has such of {column.dimension} {column.value_type}; train a model on it"
            )

    def _add_vectors(self, vectors: UsableVectors) -> None:
        if len(vectors) == 0:
            return
        centroids = self._model.centroids
        if self._model.metric == Metric.HAMMING:
            partitions, _ = assign_bytes(vectors.numbers, centroids.astype(np.uint8))
        else:
            numbers = centroids.astype(np.float32)
            partitions, _ = assign(vectors.numbers, numbers, self._model.metric)
        coded = self._encoder.encode(vectors, partitions)
        self._rows.add(vectors.row_ids, partitions, coded)
