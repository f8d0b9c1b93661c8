"""A filter over the rows of an answer: those that were found and do not pass are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.candidates import Candidates
from lance_core.query.answer_shape import DISTANCE_FIELD
from lance_core.query.row_filter import checking, read_filter
from lance_core.scan.projection import resolve_projection
from lance_core.scan.take import RowTaker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lance_core.query.deadline import Deadline
    from lance_core.query.session import Session
    from lance_core.table.snapshot import Snapshot


class Postfilter:
    """A filter that judges rows found by a search; it may name what that tells of them.

    Parameters
    ----------
    session, snapshot
        Opened files, and the version.
    text, params
        The filter, and values of the ``$name`` in it.
    deadline
        Looked at while it is read.
    found
        What the search tells of rows. A column of the table of such a name cannot be in an answer.

    Raises errors like `lance_core.query.row_filter.RowFilter`.
    """

    def __init__(
        self,
        session: Session,
        snapshot: Snapshot,
        text: str,
        deadline: Deadline,
        *,
        params: Mapping[str, object] | None = None,
        found: Sequence[pa.Field] = (DISTANCE_FIELD,),
    ) -> None:
        self._filter = read_filter(text, snapshot.schema, deadline, others=found, params=params)
        names = [each.name for each in found]
        stored = [each for each in self._filter.columns if each not in names]
        columns = resolve_projection(snapshot.schema, stored)
        self._names = [*columns.schema.names, *names]
        self._taker = RowTaker(session.files, snapshot, columns)

    def passes(
        self, addresses: NDArray[np.uint64], found: Sequence[pa.Array], deadline: Deadline
    ) -> NDArray[np.bool_]:
        """Tell which rows pass, shape ``(n,)``, by where they lie and what was found of them."""
        stored = self._taker.take(addresses)
        columns = [*(_joined(column) for column in stored), *found]
        batch = pa.RecordBatch.from_arrays(columns, self._names)
        holds: NDArray[np.bool_] = self._filter.holds(batch, checking(deadline)).to_numpy(
            zero_copy_only=False
        )
        return holds

    def keep(
        self,
        found: Sequence[Candidates],
        addresses: Sequence[NDArray[np.uint64]],
        deadline: Deadline,
    ) -> list[Candidates]:
        """Return of each ranking the rows that pass; ``addresses`` tells where they lie."""
        distances = np.concatenate([each.distances for each in found])
        passes = self.passes(np.concatenate(addresses), [pa.array(distances)], deadline)
        ends = np.cumsum([len(each) for each in found])
        return [
            Candidates(each.distances[kept], each.row_ids[kept])
            for each, kept in zip(found, np.split(passes, ends[:-1]), strict=True)
        ]


def _joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
