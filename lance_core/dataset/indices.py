"""Making, maintaining and dropping the indices of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.dataset.reads import DatasetReads
from lance_core.operations.commit_segments import drop_index
from lance_core.operations.create_index import create_index
from lance_core.operations.new_index import NewIndex
from lance_core.operations.optimize_indices import OptimizeOptions, optimize_indices
from lance_core.operations.progress import no_progress
from lance_core.operations.write_segment import MEMORY_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from lance_core.operations.progress import Progress
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
        """Build an index that answers conditions on a column.

        Parameters
        ----------
        column
            The column, or a part of a struct (``point.x``).
        index_type
            ``BTREE`` for values in any number, ``BITMAP`` for few different ones, ``LABEL_LIST``
            for lists of few different ones, ``NGRAM`` for texts that are searched for parts;
            ``ZONEMAP`` and ``BLOOMFILTER`` are small and rule out stretches of rows.
        name
            Name of the index; that of the column with ``_idx`` unless it is given.
        replace
            Whether an index of the name on the same column is replaced; else it is an error.
        memory_bytes
            About how much memory sorting may take; what does not fit is put on disk meanwhile.
        progress
            Called with how many rows were read, and of how many.
        parameters
            ``zone_size`` of a BTREE: rows of a page. ``rows_per_zone`` of a ZONEMAP.
            ``number_of_items`` of a BLOOMFILTER: rows of a zone; ``probability`` of finding a value
            in a zone that has it not.

        Raises
        ------
        InvalidRequestError
            The kind of index is not known, or does not take the column or a parameter; or there is
            an index of the name that must not be replaced.

        Examples
        --------
        >>> dataset.create_index("price", "BTREE")  # doctest: +SKIP
        """
        index = NewIndex(f"{column}_idx" if name is None else name, column, index_type, parameters)
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
        memory_bytes: int = MEMORY_BYTES,
        progress: Progress = no_progress,
    ) -> Self:
        """Let scalar indices cover fragments that came since they were built.

        Parameters
        ----------
        names
            Which indices; None = all scalar ones.
        num_segments_to_merge
            So many of the newest segments of an index become one with the new fragments; 0 gives
            these a segment of their own, which is quick.
        memory_bytes
            As in `create_index`.
        progress
            Called with how many indices are done, and of how many.

        Raises
        ------
        IndexNotFoundError
            There is no index of a name.
        InvalidRequestError
            An index that is named is no scalar one.
        """
        options = OptimizeOptions(names, num_segments_to_merge)
        return self._with(
            optimize_indices(
                self.session.files,
                self.snapshot,
                options,
                memory_bytes=memory_bytes,
                progress=progress,
            )
        )

    def drop_index(self, name: str) -> Self:
        """Remove an index of any kind; ``IndexNotFoundError`` if there is none of the name."""
        return self._with(drop_index(self.snapshot, name))

    def _with(self, snapshot: Snapshot) -> Self:
        return type(self)(self.session, snapshot)
