"""The seam between those who ask scalar indices and those who read their files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from pyroaring import BitMap

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError, ObjectNotFoundError, UnsupportedFeatureError
from lance_core.file.reader import LanceFileReader
from lance_core.index.registry import UnusableSegmentError
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import pyarrow as pa

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.registry import IndexKind
    from lance_core.index.scalar.answer import RowAnswer
    from lance_core.schema.field import LanceField
    from lance_core.table.base_paths import Place
    from lance_core.table.index_metadata import IndexMetadata

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

    @property
    def num_parts(self) -> int:
        """Parts of the files that are read and kept in the cache as queries need them."""

    def load_parts(self, start: int, stop: int) -> int:
        """Bring the parts ``start`` to ``stop - 1`` into the cache; return the memory they take."""

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


@dataclass(frozen=True, slots=True, eq=False)
class SegmentSource:
    """Where the files of a segment are, and what is known of them before they are read.

    Parameters
    ----------
    folder
        Where its files lie.
    metadata
        What the manifest says.
    field
        The column.
    cache
        Keeps what was decoded.
    """

    folder: Place
    metadata: IndexMetadata
    field: LanceField
    cache: ByteCache

    @property
    def column_type(self) -> pa.DataType:
        """Type of the column's values."""
        return arrow_type(self.field)

    @property
    def built_from(self) -> BitMap:
        """Fragments that the segment was built from, as the manifest says."""
        bitmap = self.metadata.fragment_bitmap
        return BitMap() if bitmap is None else bitmap

    def key(self, what: str, name: Hashable) -> CacheKey:
        """Name something of the segment in the cache; files of a segment never change."""
        store, path = self.folder.key
        return CacheKey(what, store, (path, self.metadata.uuid, name))

    def check_key_type(self, stored: pa.DataType, expected: pa.DataType) -> None:
        """Refuse keys of another type than expected; ``UnusableSegmentError``."""
        if stored != expected:
            raise UnusableSegmentError(
                f'its keys have type {stored}, column "{self.field.name}" has {expected}'
            )

    def open(self, file_name: str) -> LanceFileReader:
        """Open a file of the segment.

        Raises
        ------
        UnusableSegmentError
            Its container or an encoding is not supported, as of files that pylance 0.20 wrote.
        CorruptFileError
            It is missing, or contradicts the format.
        """
        try:
            return self.open_if_present(file_name)
        except ObjectNotFoundError as error:
            path = self.folder.below(file_name).path
            raise CorruptFileError(path, "named by the manifest but missing") from error

    def open_if_present(self, file_name: str) -> LanceFileReader:
        """Open a file that may be missing: ``ObjectNotFoundError``; else as `open`."""
        place = self.folder.below(file_name)
        sizes = {file.path: file.size for file in self.metadata.files}
        try:
            return LanceFileReader.open(place.scheduler, place.path, sizes.get(file_name))
        except UnsupportedFeatureError as error:
            raise UnusableSegmentError(str(error)) from error
