"""The columns of a file, parsed when they are first used."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lance_core.encodings.place import Place
from lance_core.errors import CorruptFileError
from lance_core.file.column import Column
from lance_core.file.columns import fields_with_columns
from lance_core.file.pages import KnownLayouts, PageParser

if TYPE_CHECKING:
    from lance_core.encodings.version import FileVersion
    from lance_core.file.columns import ColumnTarget
    from lance_core.file.metadata import FileMetadata
    from lance_core.ids import ColumnIndex
    from lance_core.schema.field import LanceField


class FileColumns:
    """Columns by index; safe to share between threads."""

    def __init__(self, metadata: FileMetadata) -> None:
        self._metadata = metadata
        self._fields = fields_with_columns(metadata.schema, metadata.version)
        self._top_level = {field.id for field in metadata.schema.fields}
        self._columns: dict[int, Column] = {}
        self._layouts = KnownLayouts()
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """The file, as the store names it."""
        return self._metadata.path

    @property
    def version(self) -> FileVersion:
        """Version of the file."""
        return self._metadata.version

    @property
    def nbytes(self) -> int:
        """Memory of the columns used so far."""
        return sum(column.nbytes for column in list(self._columns.values()))

    def __getitem__(self, index: ColumnIndex) -> Column:
        """Return a column.

        Raises
        ------
        CorruptFileError
            The file has no such column, or its metadata contradicts itself.
        UnsupportedFeatureError
            A page is encoded in a way that is not read; names column and encoding.
        """
        column = self._columns.get(index)
        if column is None:
            column = self._open(index)
            with self._lock:
                column = self._columns.setdefault(index, column)
        return column

    def of_field(self, target: ColumnTarget, field: LanceField) -> Column:
        """Return the column of a part of a target."""
        if field.id not in target.columns:
            raise CorruptFileError(
                self.path, f"no column is named for {field.name!r} of {target.field.name!r}"
            )
        return self[target.columns[field.id]]

    def only(self, target: ColumnTarget) -> Column | None:
        """Return the column of a target that is neither list nor struct, else None."""
        return self.of_field(target, target.field) if target.field.owns_column else None

    def _open(self, index: ColumnIndex) -> Column:
        field = self._field_of(index)
        place = Place(self.path, field.name)
        parser = PageParser(field, self.version, self._metadata.size, place, self._layouts)
        pages = parser.pages_of(self._metadata.pages(index))
        column = Column(pages, place, is_dictionary=field.is_dictionary)
        num_rows = self._metadata.num_rows
        if field.id in self._top_level and column.num_rows != num_rows:
            raise place.corrupt(f"the column has {column.num_rows} of {num_rows} rows")
        return column

    def _field_of(self, index: ColumnIndex) -> LanceField:
        existing = min(self._metadata.num_columns, len(self._fields))
        if not 0 <= index < existing:
            raise CorruptFileError(self.path, f"there is no column {index}, only {existing}")
        return self._fields[index]
