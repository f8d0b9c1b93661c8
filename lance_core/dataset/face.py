"""A dataset at one version: what can be read of it, and what can be done to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.dataset.explained import DatasetExplained
from lance_core.dataset.hybrid import DatasetHybrid
from lance_core.dataset.indices import DatasetIndices
from lance_core.dataset.maintenance import DatasetMaintenance
from lance_core.dataset.segments import DatasetSegments
from lance_core.dataset.versions import DatasetVersions
from lance_core.errors import InvalidRequestError
from lance_core.operations.add_columns import (
    add_columns_of_rows,
    add_computed_columns,
    add_null_columns,
)
from lance_core.operations.alter_columns import ColumnChange, alter_columns, drop_columns
from lance_core.operations.append import append_rows, file_version_of, overwrite_rows
from lance_core.operations.delete import delete_rows
from lance_core.operations.merge_insert import merge_insert
from lance_core.operations.merge_rules import MergeRules
from lance_core.operations.update import update_rows
from lance_core.operations.write_fragments import FragmentOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from lance_core.operations.add_columns import Compute
    from lance_core.operations.given_rows import RowSource
    from lance_core.operations.merge_rules import (
        WhenMatched,
        WhenNotMatched,
        WhenNotMatchedBySource,
    )
    from lance_core.operations.update import NewValue

_MAX_ROWS_PER_FILE = 1 << 20
_MAX_BYTES_PER_FILE = 90 << 30


class Dataset(
    DatasetHybrid,
    DatasetExplained,
    DatasetIndices,
    DatasetSegments,
    DatasetMaintenance,
    DatasetVersions,
):
    """One immutable version of a dataset; safe to share between threads.

    Made by `open_dataset` and `write_dataset`. What changes the dataset commits a new version on
    top of the newest one, and returns the dataset at it; this one stays what it is. Where others
    committed meanwhile, the work is done anew if need be, and `CommitConflictError` is raised if
    that cannot help.
    """

    def append(
        self,
        data: RowSource,
        *,
        max_rows_per_file: int = _MAX_ROWS_PER_FILE,
        max_bytes_per_file: int = _MAX_BYTES_PER_FILE,
    ) -> Self:
        """Add rows at the end.

        Parameters
        ----------
        data
            Columns of the table, in any order; nullable ones that are missing read as null. A
            table, a reader of record batches, an iterable of them, or a frame of another library
            that has ``__arrow_c_stream__``.
        max_rows_per_file, max_bytes_per_file
            Sizes of new fragments, see `write_dataset`.

        Raises
        ------
        InvalidRequestError, TypeMismatchError
            The rows do not fit the table.
        """
        options = FragmentOptions(max_rows_per_file, max_bytes_per_file)
        return self._at(append_rows(self.snapshot, data, options))

    def overwrite(
        self,
        data: RowSource,
        *,
        max_rows_per_file: int = _MAX_ROWS_PER_FILE,
        max_bytes_per_file: int = _MAX_BYTES_PER_FILE,
        data_storage_version: str | None = None,
    ) -> Self:
        """Replace all rows and the schema; older versions stay readable.

        Parameters
        ----------
        data
            As in `append`, of any columns.
        max_rows_per_file, max_bytes_per_file
            Sizes of new fragments, see `write_dataset`.
        data_storage_version
            Version of the data files from now on; None = the one that they have.
        """
        version = (
            file_version_of(self.snapshot) if data_storage_version is None else data_storage_version
        )
        options = FragmentOptions(max_rows_per_file, max_bytes_per_file, version)
        return self._at(overwrite_rows(self.snapshot, data, options))

    def delete(self, predicate: str) -> Self:
        """Delete the rows for which a predicate is true.

        Parameters
        ----------
        predicate
            A filter as those of `scan`, such as ``"price > 10 AND name LIKE 'b%'"``; ``"true"``
            names all rows, and rows for which it is unknown stay.

        Raises
        ------
        InvalidRequestError, TypeMismatchError
            It is no predicate, names no column, or compares one with what it never holds.
        """
        return self._at(delete_rows(self.session.files, self.snapshot, predicate))

    def update(self, values: Mapping[str, NewValue], where: str = "true") -> Self:
        """Set columns of the rows for which a predicate is true.

        Parameters
        ----------
        values
            New values by column: one value for all rows, None being null, or a function from record
            batches of whole rows to arrays of the column's type, called once per batch.
        where
            As in `delete`; all rows unless it is given.

        Raises
        ------
        InvalidRequestError, TypeMismatchError
            As `delete`; or there is no such column, or a value is not of its type.

        Examples
        --------
        >>> import pyarrow.compute as pc
        >>> more = {"price": lambda batch: pc.add(batch["price"], 1.0), "note": "dearer"}
        >>> dataset.update(more, where="price < 5")  # doctest: +SKIP
        """
        return self._at(update_rows(self.session.files, self.snapshot, values, where))

    def merge_insert(
        self,
        data: RowSource,
        on: str | Sequence[str],
        *,
        when_matched: WhenMatched = "update",
        when_not_matched: WhenNotMatched = "insert",
        when_not_matched_by_source: WhenNotMatchedBySource = "keep",
    ) -> Self:
        """Bring rows in by their keys; an upsert, unless the rules say otherwise.

        Parameters
        ----------
        data
            Rows as in `append`, kept in memory as a whole. Columns that are missing keep their
            values in rows that are updated, and are null in new ones.
        on
            Key columns, of any type but nested ones. A key with a null equals no other.
        when_matched
            A row of the dataset whose key is given: ``update`` takes the values given, ``fail``
            refuses them all, ``nothing`` lets it be.
        when_not_matched
            A row given whose key the dataset has not: ``insert`` or ``nothing``.
        when_not_matched_by_source
            A row of the dataset whose key is not given: ``keep`` or ``delete``.

        Raises
        ------
        InvalidRequestError, TypeMismatchError
            The rows do not fit the table, several of them would update one row, one is matched that
            must not be, or the rules change nothing.

        Examples
        --------
        >>> dataset.merge_insert(new_prices, on="id", when_not_matched="nothing")  # doctest: +SKIP
        """
        rules = MergeRules(when_matched, when_not_matched, when_not_matched_by_source)
        return self._at(merge_insert(self.session.files, self.snapshot, data, on, rules))

    def add_columns(
        self,
        columns: pa.Field | pa.Schema | Compute | RowSource,
        *,
        read_columns: Sequence[str] | None = None,
    ) -> Self:
        """Add columns, without touching the files of those that are there.

        Parameters
        ----------
        columns
            An Arrow field or schema: columns that are null in all rows. A function: it gets record
            batches of the rows and returns a batch or table of the new columns; it may be called
            again if others commit meanwhile. Anything else: rows as in `append`, one for each row
            of the dataset, in the order of a scan.
        read_columns
            Columns that the function gets; None = all.

        Raises
        ------
        InvalidRequestError, TypeMismatchError
            A column of the name is there already, values are missing or too many, or one cannot be
            stored.

        Examples
        --------
        >>> def totals(batch):
        ...     return pa.record_batch({"total": pc.multiply(batch["price"], batch["amount"])})
        >>> dataset.add_columns(totals, read_columns=["price", "amount"])  # doctest: +SKIP
        """
        files, snapshot = self.session.files, self.snapshot
        if read_columns is not None and not callable(columns):
            raise InvalidRequestError("read_columns is for functions; these columns read none")
        if isinstance(columns, pa.Field):
            columns = pa.schema([columns])
        if isinstance(columns, pa.Schema):
            return self._at(add_null_columns(snapshot, columns))
        if callable(columns):
            return self._at(add_computed_columns(files, snapshot, columns, read_columns))
        return self._at(add_columns_of_rows(files, snapshot, columns))

    def alter_columns(self, *changes: ColumnChange) -> Self:
        """Rename columns, allow or forbid nulls in them, or change their types.

        Parameters
        ----------
        changes
            Each of another column. Data are written only where a type changes; such a column loses
            its indices.

        Raises
        ------
        InvalidRequestError
            There is no such column, a name is taken, a column that may not be null has nulls, or
            values cannot be cast.

        Examples
        --------
        >>> dataset.alter_columns(ColumnChange("price", name="cost"))  # doctest: +SKIP
        """
        return self._at(alter_columns(self.session.files, self.snapshot, changes))

    def drop_columns(self, columns: Sequence[str]) -> Self:
        """Drop columns, or parts of structs (``point.x``); nothing is written but a version.

        Raises
        ------
        InvalidRequestError
            There is no such column, or none would be left.
        """
        return self._at(drop_columns(self.snapshot, columns))
