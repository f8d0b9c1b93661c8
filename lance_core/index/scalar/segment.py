"""The seam between those who ask scalar indices and those who read their files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from lance_core.index.registry import UnusableSegmentError
from lance_core.index.segment_source import SegmentSource
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.registry import IndexKind
    from lance_core.index.scalar.answer import RowAnswer
    from lance_core.schema.field import LanceField

    Check = Callable[[], object]
    """Called again and again while work goes on; raises when it has to stop."""

RowNames = Literal["address", "row_id"]


class ScalarSegment(Protocol):
    """An opened segment of a scalar index: the small part of its files, and means to read more.

    Shared by all threads and all versions that have the segment.
    """

    @property
    def kind(self) -> IndexKind:
        """Which index it is."""

    @property
    def names_rows_by(self) -> RowNames:
        """How answers name rows.

        By ``address``, always; or by ``row_id``, which is the address too unless the table has
        stable row ids, and then has to be translated.
        """

    @property
    def knows_nulls(self) -> bool:
        """Whether answers tell the null rows if asked; else NOT must not be answered by it."""

    @property
    def nbytes(self) -> int:
        """Memory held, without what it keeps in the cache."""

    def watch_growth(self, told: Callable[[], object]) -> None:
        """Call ``told`` from now on after each read that may have made `nbytes` larger."""

    def supports(self, query: LeafQuery) -> bool:
        """Tell whether the index can answer a query; reads nothing."""

    def search(self, query: LeafQuery, *, with_nulls: bool, check: Check) -> RowAnswer:
        """Find rows.

        Parameters
        ----------
        query
            One that the index `supports`.
        with_nulls
            Whether ``nulls`` of the answer are wanted, which may have to be read.
        check
            Called between pieces of work; raises when it has to stop.

        Returns
        -------
        RowAnswer
            Rows as the files name them: fragments that are gone or not covered may be among them,
            and so may deleted rows, and offsets behind the end of their fragment.

        Raises
        ------
        CorruptFileError
            What is read contradicts the format.
        UnsupportedFeatureError
            A column has an encoding that is not supported.
        """


class ValueSegment(ScalarSegment, Protocol):
    """A segment of an index of values, which can be loaded before it is asked."""

    @property
    def num_parts(self) -> int:
        """Parts of the files that are read and kept in the cache as queries need them."""

    def load_parts(self, start: int, stop: int) -> int:
        """Bring the parts ``start`` to ``stop - 1`` into the cache; return the memory they take."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarSource(SegmentSource):
    """Where the files of a segment are, and the column whose values it indexes.

    Parameters
    ----------
    folder, metadata, cache
        As of every segment.
    field
        The column.
    """

    field: LanceField

    @property
    def column_type(self) -> pa.DataType:
        """Type of the column's values."""
        return arrow_type(self.field)

    def check_key_type(self, stored: pa.DataType, expected: pa.DataType) -> None:
        """Refuse keys of another type than expected; ``UnusableSegmentError``."""
        if stored != expected:
            raise UnusableSegmentError(
                f'its keys have type {stored}, column "{self.field.name}" has {expected}'
            )
