"""Making, maintaining and dropping the indices of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.dataset.reads import DatasetReads
from lance_core.file.arguments import checked_text
from lance_core.operations.commit_segments import drop_index
from lance_core.operations.create_index import create_index
from lance_core.operations.new_index import NewIndex, usual_index_name
from lance_core.operations.optimize_indices import OptimizeOptions, optimize_indices
from lance_core.operations.progress import no_progress
from lance_core.operations.write_segment import MEMORY_BYTES
from lance_core.query.describe_indices import index_of_name, indices_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from lance_core.operations.progress import Progress
    from lance_core.query.index_statistics import IndexStatistics
    from lance_core.table.snapshot import Snapshot


class DatasetIndices(DatasetReads):
    """What can be done to the indices of a dataset."""

    def create_index(
        self,
        column: str,
        index_type: str,
        name: str | None = None,
        *,
        replace: bool = True,
        memory_bytes: int = MEMORY_BYTES,
        progress: Progress = no_progress,
        **parameters: object,
    ) -> Self:
        """Build an index that answers conditions, or finds words or nearest vectors.

        Parameters
        ----------
        column
            The column, or a part of a struct (``point.x``).
        index_type
            ``BTREE`` for values in any number, ``BITMAP`` for few different ones, ``LABEL_LIST``
            for lists of few different ones, ``NGRAM`` for texts that are searched for parts;
            ``ZONEMAP`` and ``BLOOMFILTER`` are small and rule out stretches of rows.

            ``INVERTED``, or ``FTS``, finds the words of texts, or of lists of texts.

            Of vectors ``IVF_FLAT``, which keeps them whole; ``IVF_SQ`` (a byte for a number),
            ``IVF_PQ`` and ``IVF_RQ`` code them shorter and less exactly. ``IVF_HNSW_FLAT``,
            ``IVF_HNSW_SQ`` and ``IVF_HNSW_PQ`` have a graph for few large partitions.
        name
            Name of the index; the path of the column with ``_idx`` unless it is given.
        replace
            Whether an index of the name on the same column is replaced; else it is an error.
        memory_bytes
            About how much memory may be taken; what does not fit is put on disk meanwhile. The
            sample that a model of vectors is trained with is smaller where it must be. For vectors
            at least 96 MiB, which builds without graphs keep to at 128 coordinates, and 160 MiB for
            indices with graphs. On top come a partition larger than a sixteenth of it, which is
            held whole, and graphs: some 360 bytes a row of the partitions under way, and their
            pages. Six partitions of 33,000 rows took up to 70 MB more than 96 MiB.
        progress
            Called with how much is done, and of how much.
        parameters
            ``zone_size`` of a BTREE: rows of a page. ``rows_per_zone`` of a ZONEMAP.
            ``number_of_items`` of a BLOOMFILTER: rows of a zone; ``probability`` of finding a value
            in a zone that has it not.

            Of an INVERTED those of `TextParameters`: ``with_position`` lets phrases be found,
            ``language``, ``base_tokenizer``, ``stem``, ``remove_stop_words`` and others say what
            words are, ``block_size`` and ``format_version`` how they are stored.

            Of vectors ``metric`` (``l2``, ``cosine``, ``dot``, or ``hamming`` for bytes),
            ``num_partitions`` or ``target_partition_size``, ``sample_rate`` and ``max_iters`` of
            training, ``ivf_centroids``. Of PQ ``num_sub_vectors``, ``num_bits`` and
            ``pq_codebook``, of RQ ``num_bits``, ``rotation_type`` and ``rotation``; of graphs
            ``m``, ``ef_construction`` and ``max_level``.

        Returns
        -------
        Self
            The dataset with the index. Where there are too few vectors to train a model (none; for
            IVF_PQ and IVF_HNSW_PQ fewer than ``2 ** num_bits``), the index has no segment that
            covers rows, as with pylance: `optimize_indices` builds it when there are enough.

        Raises
        ------
        InvalidRequestError
            The kind of index is not known, or does not take the column or a parameter; there is an
            index of the name that must not be replaced; or an argument is none.

        Notes
        -----
        Distances have 32 bits. An index of coordinates whose squares are near the largest such
        number (of 8 coordinates 1e18) answers wrongly: IVF_RQ lost half of the rows with ``l2``,
        that of pylance 14.0.2 all of them. Scale such vectors, or search exactly.

        Examples
        --------
        >>> dataset.create_index("price", "BTREE")  # doctest: +SKIP
        >>> dataset.create_index("vector", "IVF_PQ", metric="cosine")  # doctest: +SKIP
        """
        index_name = usual_index_name(self.snapshot, column) if name is None else name
        index = NewIndex(index_name, column, index_type, parameters)
        return self._with(
            create_index(
                self.session.files,
                self.snapshot,
                index,
                replace=replace,
                memory_bytes=memory_bytes,
                progress=progress,
            )
        )

    def optimize_indices(
        self,
        names: Sequence[str] | None = None,
        *,
        num_segments_to_merge: int = 1,
        retrain: bool = False,
        memory_bytes: int = MEMORY_BYTES,
        progress: Progress = no_progress,
    ) -> Self:
        """Let indices cover fragments that came since they were built.

        Parameters
        ----------
        names
            Which indices; None = all that can be.
        num_segments_to_merge
            So many of the newest segments of an index become one with the new fragments; 0 gives
            these a segment of their own, which is quick.
        retrain
            Whether all segments become one that is built as if there was none: of vectors by a new
            model, with as many partitions as the rows ask for.
        memory_bytes
            As in `create_index`.
        progress
            Called with how far the indices are, in thousandths; each is an equal part.

        Raises
        ------
        IndexNotFoundError
            There is no index of a name.
        InvalidRequestError
            An index that is named is of a type that is not built here, or has to be built anew and
            does not tell how.
        """
        options = OptimizeOptions(names, num_segments_to_merge, retrain)
        return self._with(
            optimize_indices(
                self.session.files,
                self.snapshot,
                options,
                memory_bytes=memory_bytes,
                progress=progress,
            )
        )

    def list_indices(self) -> tuple[IndexStatistics, ...]:
        """Describe all indices, without those that serve the table itself.

        Opens their segments, and reads no rows of them; one that cannot be used says so.
        """
        return indices_of(self.session, self.snapshot)

    def index_statistics(self, name: str) -> IndexStatistics:
        """Describe an index of any kind: rows that it covers and does not, segments, partitions.

        Raises ``IndexNotFoundError`` if there is none of the name.
        """
        return index_of_name(self.session, self.snapshot, checked_text("name", name))

    def drop_index(self, name: str) -> Self:
        """Remove an index of any kind; ``IndexNotFoundError`` if there is none of the name."""
        return self._with(drop_index(self.snapshot, name))

    def _with(self, snapshot: Snapshot) -> Self:
        return type(self)(self.session, snapshot)
