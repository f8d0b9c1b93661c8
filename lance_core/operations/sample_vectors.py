"""A random sample of the vectors of a column, for which no more is read than it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_core.file.windows import least_row_bytes
from lance_core.index.vector.build.budget import Budget, Trimmer, trim_heaps
from lance_core.index.vector.build.kmeans import SEED
from lance_core.index.vector.build.usable import UsableVectors, usable_vectors
from lance_core.index.vector.metric import Metric
from lance_core.scan.projection import resolve_projection
from lance_core.scan.ranks import addresses_of_ranks
from lance_core.scan.take import take_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.index.vector.build.parameters import VectorParameters
    from lance_core.scan.projection import Projection
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_READ_BYTES = 8 << 20
_NEIGHBOURS = 8
"""Rows that are read together: an eighth of the requests to a remote store."""
_MOST_BLOCKS = 1 << 22
_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class VectorSample:
    """Some vectors of a column.

    Parameters
    ----------
    vectors
        The sample.
    num_vectors
        About how many usable vectors the column has; all of them where the sample has all.
    """

    vectors: UsableVectors
    num_vectors: int


def sample_vectors(
    files: TableFiles,
    snapshot: Snapshot,
    column: str,
    parameters: VectorParameters,
    covered: BitMap,
    memory_bytes: int,
    wanted: int | None = None,
    *,
    seed: int = SEED,
) -> VectorSample:
    """Draw as many vectors as training wants, fewer if they do not fit into memory.

    Rows that have no usable vector make that more rows are read.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version.
    column
        The column, or the part of a struct.
    parameters
        How many are wanted, by how many there are.
    covered
        Fragments to draw from.
    memory_bytes
        How much memory training may take, see `Budget`.
    wanted
        How many at most, where these fragments give a part of a sample only; None = as many as
        training wants.
    seed
        Of the order in which rows are read.

    Returns
    -------
    VectorSample
        The same one for the same rows and seed.

    Raises
    ------
    InvalidRequestError
        No build can keep to so little memory.
    """
    fragments = [each for each in snapshot.fragments if each.id in covered]
    num_rows = sum(files.num_live_rows(snapshot, each) for each in fragments)
    projection = resolve_projection(snapshot.schema, [column])
    budget = Budget(memory_bytes)
    budget.check(has_graphs=parameters.graph is not None)
    room = _Room(parameters, num_rows, budget.sample_bytes)
    trimmer = Trimmer()
    num_seen = num_vectors = 0

    def size(num_vectors: int) -> int:
        return parameters.sample_size(num_vectors) if wanted is None else wanted

    for ranks in _draw(num_rows, size(num_rows), projection, seed):
        room.add(_read(files, snapshot, fragments, projection, parameters, ranks))
        trimmer.count(_READ_BYTES)
        num_seen += len(ranks)
        num_vectors = num_rows * room.num_found // num_seen
        if room.num_found >= min(size(num_vectors), room.size):
            break
    trim_heaps()
    return VectorSample(room.vectors(size(num_vectors)), num_vectors)


class _Room:
    """Memory for a sample; none is taken before it is written to."""

    def __init__(self, parameters: VectorParameters, num_rows: int, sample_bytes: int) -> None:
        column = parameters.column
        dtype = np.dtype(column.value_type.to_pandas_dtype())
        number_bytes = dtype.itemsize
        if dtype not in (np.float32, np.uint8):
            number_bytes += _NUMBER_BYTES  # training converts them
        if parameters.metric == Metric.DOT:
            number_bytes += _NUMBER_BYTES  # and makes them unit vectors
        vector_bytes = column.dimension * number_bytes
        fitting = max(sample_bytes // vector_bytes, parameters.least_vectors)
        self.size = fitting if column.is_multi else min(fitting, num_rows)
        self.num_found = 0
        self._values: NDArray[Any] = np.empty((self.size, column.dimension), dtype)
        self._row_ids = np.empty(self.size, np.uint64)

    def add(self, part: UsableVectors) -> None:
        """Count vectors, and keep them as long as there is room."""
        start, stop = self.num_found, min(self.num_found + len(part), self.size)
        self._values[start:stop] = part.values[: stop - start]
        self._row_ids[start:stop] = part.row_ids[: stop - start]
        self.num_found += len(part)

    def vectors(self, most: int) -> UsableVectors:
        """Return what was kept, not more than so many."""
        stop = min(self.num_found, self.size, most)
        return UsableVectors(self._values[:stop], self._row_ids[:stop])


def _draw(
    num_rows: int, wanted: int, projection: Projection, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Yield ranks of rows, all of them at last, in groups that are each spread over all rows."""
    row_bytes = sum(least_row_bytes(each.type) for each in projection.schema)
    together = max(_NEIGHBOURS, -(-num_rows // _MOST_BLOCKS))
    num_blocks = -(-num_rows // together)
    order = np.random.default_rng(seed).permutation(np.arange(num_blocks, dtype=np.int32))
    step = max(min(int(_READ_BYTES / max(row_bytes, 1)), wanted) // together, 1)
    for start in range(0, num_blocks, step):
        firsts = np.sort(order[start : start + step]).astype(np.int64) * together
        ranks = (firsts[:, np.newaxis] + np.arange(together)).ravel()
        yield ranks[ranks < num_rows]


def _read(
    files: TableFiles,
    snapshot: Snapshot,
    fragments: Sequence[Fragment],
    projection: Projection,
    parameters: VectorParameters,
    ranks: NDArray[np.int64],
) -> UsableVectors:
    addresses = addresses_of_ranks(files, snapshot, ranks, fragments)
    (values,) = take_rows(files, snapshot, addresses, projection).columns
    return usable_vectors(values.combine_chunks(), addresses, parameters.metric)
