"""Bringing rows into a dataset by their keys: some replace rows, others are new (an upsert)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.operations.arguments import checked_names
from lance_core.operations.commit_planned import commit_planned
from lance_core.operations.found_rows import add_rows, write_deletions
from lance_core.operations.given_rows import matching_fields, open_rows
from lance_core.operations.key_table import KeyTable
from lance_core.operations.merge_rules import MergeRules
from lance_core.operations.moved_rows import read_whole, write_moved
from lance_core.proto import transaction_pb2
from lance_core.scan.projection import OWN_ADDRESS, resolve_projection, with_address
from lance_core.scan.rows import scan_rows
from lance_core.schema.arrow import to_arrow_field
from lance_core.schema.blobs import with_bytes
from lance_core.table.transaction import Update

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from pyroaring import BitMap

    from lance_core.ids import FragmentId
    from lance_core.operations.given_rows import RowSource
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot

_BATCH_ROWS = 8192
_COMPARED_ROWS = 1 << 17
"""Rows that are looked up at once: every look-up hashes all keys given first."""
_FILTER_BITS = 256
_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_NO_ADDRESS, _NO_NUMBER = np.empty(0, np.uint64), np.empty(0, np.int64)


_UPSERT = MergeRules()


def merge_insert(
    files: TableFiles,
    snapshot: Snapshot,
    data: RowSource,
    on: str | Sequence[str],
    rules: MergeRules = _UPSERT,
) -> Snapshot:
    """Merge rows into a dataset.

    Parameters
    ----------
    files
        Opened files.
    snapshot
        The version that is compared first; the newest one after a conflict.
    data
        Rows with the key columns and others of the table, kept in memory as a whole. Columns that
        are missing keep their values in rows that are updated, and are null in new ones.
    on
        Key columns, of any type but nested ones. A key with a null equals no other.
    rules
        What to do.

    Returns
    -------
    Snapshot
        A new version, also when nothing changed. Updated rows keep their stable ids, if they have
        such; their addresses change.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnknownColumnError
        The rows do not fit the table, several of them would update one row, or one is matched that
        must not be.

    Notes
    -----
    As pylance 14.0.2 does it, with one difference: rows with keys that others added meanwhile are
    compared anew, so that two writers never insert one key.
    """
    rows = open_rows(data)
    source = _without_views(pa.Table.from_batches(rows, rows.schema))
    keys = checked_names("on", [on] if isinstance(on, str) else on)
    known = _checked_keys(source, keys)

    def plan(newest: Snapshot) -> Update:
        return _Merge(files, newest, source, keys, known, rules).written()

    return commit_planned(snapshot, plan)


def _checked_keys(source: pa.Table, keys: tuple[str, ...]) -> KeyTable:
    for name in keys:
        if name not in source.column_names:
            raise UnknownColumnError(name, source.column_names, where="the rows given")
    return KeyTable([source[name] for name in keys], keys)


class _Merge:
    """A merge into one version."""

    def __init__(
        self,
        files: TableFiles,
        snapshot: Snapshot,
        source: pa.Table,
        keys: tuple[str, ...],
        known: KeyTable,
        rules: MergeRules,
    ) -> None:
        self._files = files
        self._snapshot = snapshot
        self._source = source
        self._keys = keys
        self._known = known
        self._rules = rules
        inserts = rules.when_not_matched == "insert"
        self._fields = matching_fields(source.schema, snapshot.schema, may_lack=not inserts)

    def written(self) -> Update:
        """Compare the rows, write what changes, and return it."""
        addresses, numbers, others = self._compare()
        self._check(numbers)
        inserted = self._rows_to_insert(numbers)
        moved: dict[FragmentId, BitMap] = {}
        if self._rules.when_matched == "update":
            add_rows(moved, addresses)
            moved = dict(sorted(moved.items()))
        order = np.argsort(addresses) if len(moved) > 0 else np.empty(0, np.int64)
        updating = self._row_of_key()[numbers[order]]
        batches = self._batches(moved, updating, inserted)
        fragments = write_moved(self._files, self._snapshot, moved, batches)
        gone = {number: offsets.copy() for number, offsets in moved.items()}
        add_rows(gone, others)
        deleted = write_deletions(self._files, self._snapshot, gone)
        return Update(
            deleted.removed_fragment_ids,
            deleted.updated_fragments,
            tuple(fragments),
            fields_preserving_coverage=tuple(
                each.id for top in self._fields.fields for each in top.walk()
            ),
            inserted_rows=self._any_key() if len(inserted) > 0 else None,
        )

    def _compare(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
        """Return address and number of the key of each row matched, and addresses to delete."""
        projection = with_address(resolve_projection(self._snapshot.schema, self._keys))
        deletes = self._rules.when_not_matched_by_source == "delete"
        matched, numbers, others = [_NO_ADDRESS], [_NO_NUMBER], [_NO_ADDRESS]
        rows = scan_rows(self._files, self._snapshot, projection, batch_rows=_COMPARED_ROWS)
        for batch in rows:
            found = self._known.find([batch[name] for name in self._keys])
            addresses = batch[OWN_ADDRESS].to_numpy()
            matched.append(addresses[found >= 0])
            numbers.append(found[found >= 0])
            if deletes:
                others.append(addresses[found < 0])
        return np.concatenate(matched), np.concatenate(numbers), np.concatenate(others)

    def _check(self, numbers: NDArray[np.int64]) -> None:
        """Refuse matches that the rules forbid, and those with several rows given."""
        if self._rules.when_matched == "nothing" or len(numbers) == 0:
            return
        if self._rules.when_matched == "fail":
            raise InvalidRequestError(
                f"the dataset has the key {self._key(int(numbers[0]))} already"
            )
        given = np.bincount(self._known.numbers[self._known.numbers >= 0])
        twice = numbers[given[numbers] > 1]
        if len(twice) > 0:
            raise InvalidRequestError(
                f"{given[twice[0]]} of the rows have the key {self._key(int(twice[0]))} and would"
                " update one row; give one row for each key"
            )

    def _key(self, number: int) -> str:
        row = int(np.flatnonzero(self._known.numbers == number)[0])
        return ", ".join(f"{name} = {self._source[name][row].as_py()!r}" for name in self._keys)

    def _row_of_key(self) -> NDArray[np.int64]:
        """Return a row given for each key, shape ``(k,)``."""
        rows = np.flatnonzero(self._known.numbers >= 0)
        row_of_key = np.empty(self._known.num_keys, np.int64)
        row_of_key[self._known.numbers[rows]] = rows
        return row_of_key

    def _rows_to_insert(self, matched: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._rules.when_not_matched == "nothing":
            return np.empty(0, np.int64)
        is_matched = np.zeros(self._known.num_keys + 1, np.bool_)  # the last one is no key: -1
        is_matched[matched] = True
        return np.flatnonzero(~is_matched[self._known.numbers])

    def _batches(
        self,
        moved: dict[FragmentId, BitMap],
        updating: NDArray[np.int64],
        inserted: NDArray[np.int64],
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are moved, with their new values, then those that are new."""
        missing = [f for f in self._snapshot.schema.fields if f.name not in self._fields.names]
        start = 0
        if len(missing) == 0:
            yield from (self._given(rows) for rows in _pieces(updating))
        else:
            for kept in read_whole(self._files, self._snapshot, moved, missing):
                stop = start + kept.num_rows
                yield _side_by_side(self._given(updating[start:stop]), kept)
                start = stop
        for rows in _pieces(inserted):
            nulls = [_nulls(to_arrow_field(with_bytes(field)), len(rows)) for field in missing]
            empty = pa.RecordBatch.from_arrays(nulls, [field.name for field in missing])
            yield _side_by_side(self._given(rows), empty)

    def _given(self, rows: NDArray[np.int64]) -> pa.RecordBatch:
        taken = self._source.select(list(self._fields.names)).take(pa.array(rows))
        columns = [pa.concat_arrays(column.chunks) for column in taken.columns]
        return pa.RecordBatch.from_arrays(columns, schema=taken.schema)

    def _any_key(self) -> transaction_pb2.KeyExistenceFilter:
        """Say that any key may have been inserted, so that writers of others' keys look again."""
        bloom = transaction_pb2.KeyExistenceFilter.BloomFilter(
            bitmap=b"\xff" * (_FILTER_BITS // 8), num_bits=_FILTER_BITS, probability=1.0
        )
        ids = [self._snapshot.schema.field(name).id for name in self._keys]
        return transaction_pb2.KeyExistenceFilter(field_ids=ids, bloom=bloom)


def _without_views(table: pa.Table) -> pa.Table:
    """Return texts and binary as they are stored; Arrow takes no rows out of views of them."""
    for place, field in enumerate(table.schema):
        plain = _PLAIN.get(field.type)
        if plain is not None:
            column = table.column(place).cast(plain)
            table = table.set_column(place, field.with_type(plain), column)
    return table


def _pieces(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(rows), _BATCH_ROWS):
        yield rows[start : start + _BATCH_ROWS]


def _side_by_side(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([*first.schema, *second.schema])
    return pa.RecordBatch.from_arrays([*first.columns, *second.columns], schema=schema)


def _nulls(field: pa.Field, num_rows: int) -> pa.Array:
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.nulls(num_rows, kind.storage_type))
    return pa.nulls(num_rows, kind)
