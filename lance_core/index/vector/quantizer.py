"""The seams between a segment, the form its rows are stored in, and the graph over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.file.reader import LanceFileReader
    from lance_core.index.vector.held_partitions import HeldPartitions
    from lance_core.index.vector.metric import Metric
    from lance_core.kernels.exact_rank import ExactRanking
    from lance_core.kernels.topk import TopRows

ApproxMode = Literal["normal", "fast", "accurate"]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How one query searches a segment.

    Parameters
    ----------
    k
        Rows wanted from the segment.
    lower, upper
        Only rows with ``lower <= distance < upper``; None = no bound on that side.
    ef
        Rows that a graph search keeps while it looks for better ones, at least ``k``; None = half
        more than that.
    approx_mode
        How finely quantised vectors are scored, and how filtered graphs are walked.
    is_late
        Whether the partitions are probed because earlier ones had too few rows (vector index page,
        section 7.3).
    exact
        What a searcher that can may give the rows it finds exact distances by; None = nothing.
    """

    k: int
    lower: float | None = None
    upper: float | None = None
    ef: int | None = None
    approx_mode: ApproxMode = "normal"
    is_late: bool = False
    exact: ExactRanking | None = None


@dataclass(frozen=True, slots=True)
class PayloadColumn:
    """A column of the storage that is needed beside the row ids.

    Parameters
    ----------
    name
        Name of the column.
    value_types
        Types that its values may have; others are not supported.
    width
        Values of a row, in a fixed-size list; None = one, not in a list.
    """

    name: str
    value_types: tuple[pa.DataType, ...]
    width: int | None


class Searcher(Protocol):
    """Finds the nearest rows of partitions in memory."""

    def search(
        self,
        held: HeldPartitions,
        query: NDArray[np.float32],
        words: NDArray[np.uint64],
        top: TopRows,
        options: SearchOptions,
    ) -> None:
        """Offer rows of the held partitions to ``top``.

        Parameters
        ----------
        held
            What to search, in the order of their distance.
        query
            Shape ``(d,)``, C-contiguous and writable; of unit length for cosine.
        words
            Dense bitset over ordinals; only rows whose bit is set may be offered.
        top
            Receives the nearest rows; made for ``options.k`` and the bounds of ``options``.
        options
            How to search.
        """


class Quantizer(Searcher, Protocol):
    """The form in which the rows of a partition are stored, and how it is scored."""

    @property
    def columns(self) -> tuple[PayloadColumn, ...]:
        """Columns of the storage that `lay_out` takes, in this order."""

    @property
    def num_arrays(self) -> int:
        """How many arrays `lay_out` returns, at least one."""

    @property
    def raw_row_bytes(self) -> int | None:
        """Bytes of a row where the first column may be used as it lies in a mapped file, else None.

        Such a quantiser has one column and one array.
        """

    @property
    def drops_rows(self) -> bool:
        """Whether rows that compaction removed must be taken out; others are only masked."""

    @property
    def nbytes(self) -> int:
        """Memory held for all partitions together."""

    def lay_out(
        self, columns: Sequence[NDArray[np.generic]], is_kept: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.generic], ...]:
        """Arrange the rows of one partition as kernels take them.

        Parameters
        ----------
        columns
            Shape ``(n, width)`` for lists and ``(n,)`` for numbers.
        is_kept
            Shape ``(n,)``: rows to keep; None = all. Given only if `drops_rows`.

        Returns
        -------
        tuple
            C-contiguous arrays that own their memory.
        """


class Graph(Searcher, Protocol):
    """Links between the rows of each partition, along which a search walks."""

    @property
    def num_arrays(self) -> int:
        """How many arrays `read` returns for a partition."""

    @property
    def nbytes(self) -> int:
        """Memory held for all partitions together."""

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""

    def arrange(self, arrays: tuple[NDArray[np.generic], ...]) -> tuple[NDArray[np.generic], ...]:
        """Return what the quantiser laid out for a partition as the graph's kernels take it."""

    def read(
        self, partitions: Sequence[int], num_rows: Sequence[int]
    ) -> list[tuple[NDArray[np.generic], ...]]:
        """Return the links of partitions that have ``num_rows`` rows each, as kernels take them.

        Raises
        ------
        CorruptFileError
            A link does not lead to a row of its partition.
        """


@dataclass(frozen=True, slots=True, eq=False)
class StorageSource:
    """What a quantiser is opened from.

    Parameters
    ----------
    reader
        ``auxiliary.idx``.
    parameters
        The quantiser's object of its ``storage_metadata``.
    metric
        Metric of the segment.
    centroids
        Shape ``(P, d)``, C-contiguous and writable.
    """

    reader: LanceFileReader
    parameters: Mapping[str, object]
    metric: Metric
    centroids: NDArray[np.float32]

    @property
    def path(self) -> str:
        """The file, for errors."""
        return self.reader.path

    @property
    def dimension(self) -> int:
        """Dimension of the vectors."""
        return int(self.centroids.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class GraphSource:
    """What the graphs of a segment are opened from.

    Parameters
    ----------
    reader
        ``index.idx``.
    quantizer
        The form of the rows.
    metric
        Metric of the segment.
    centroids
        Shape ``(P, d)``, C-contiguous and writable.
    """

    reader: LanceFileReader
    quantizer: Quantizer
    metric: Metric
    centroids: NDArray[np.float32]
