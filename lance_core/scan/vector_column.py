"""The vectors of a column as search kernels see them: runs of contiguous rows in memory.

A row is a vector of float32 or of bytes, or says where a list of such vectors lies. A fragment
whose vectors lie raw in a local file is mapped and costs no memory of its own; any other is decoded
once and kept in the byte cache.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.cache.keys import CacheKey
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.file.mapped_rows import map_rows
from lance_core.ids import FragmentId
from lance_core.kernels.memory import address_of
from lance_core.kernels.row_addresses import largest_of_one_fragment, pointers_to_rows
from lance_core.row_address import OFFSET_BITS, fragment_of
from lance_core.scan.vector_arrays import as_lists, as_vectors
from lance_core.scan.vector_type import vector_type
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from lance_core.cache.byte_cache import ByteCache
    from lance_core.schema.field import LanceField
    from lance_core.table.base_paths import Place
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class VectorRuns:
    """All vectors of one fragment, in runs of rows that follow each other in memory.

    Parameters
    ----------
    addresses
        Shape ``(r,)``, int64: memory address of the first row of each run.
    first_offsets, num_rows
        Shape ``(r,)``, int64: offset of that row in the fragment, rows of the run. Runs ascend and
        leave no gaps.
    num_vectors
        How many vectors all rows have.
    is_valid
        Shape ``(physical rows,)``; None = every row has a vector. Others hold zeros or no vectors.
    owners
        What keeps the memory alive. For a mapped file the mapping as the store handed it out.
    mapped_file
        The file that is mapped; None for decoded vectors.
    nbytes
        Memory held beside mapped files.
    """

    addresses: NDArray[np.int64]
    first_offsets: NDArray[np.int64]
    num_rows: NDArray[np.int64]
    num_vectors: int
    is_valid: NDArray[np.bool_] | None
    owners: tuple[object, ...]
    mapped_file: Place | None
    nbytes: int


class VectorColumn:
    """Vectors of one column at one version.

    Raises ``UnsupportedFeatureError`` for columns whose numbers search does not support.
    """

    def __init__(
        self, files: TableFiles, cache: ByteCache, snapshot: Snapshot, field: LanceField
    ) -> None:
        found = vector_type(field)
        if found is None or not found.is_searchable:
            held = arrow_type(field) if found is None else f"vectors of {found.element}"
            raise UnsupportedFeatureError(
                f'column "{field.name}" holds {held}; search supports fixed size lists of float16,'
                " float32, float64 or uint8, and lists of these"
            )
        self.field = field
        self.type = found
        self.dimension = found.dimension
        self.row_bytes = found.row_bytes
        self._files = files
        self._cache = cache
        self._snapshot = snapshot
        self._fragments = snapshot.fragments_by_id
        self._mapped = MappedRuns(self.row_bytes)
        self._lock = threading.Lock()

    def runs(self, fragment_id: FragmentId) -> VectorRuns:
        """Return the vectors of a fragment, mapping or reading them on first use."""
        fragment = self._fragments[fragment_id]
        key = self.key(fragment_id)
        runs = self._cache.get_or_load(key, lambda: self._load(fragment))
        if runs.mapped_file is not None and not self._is_current(runs):
            # The file was replaced: what is mapped now is not what was mapped then.
            self._cache.discard([key])
            runs = self._cache.get_or_load(key, lambda: self._load(fragment))
        return runs

    def is_resident(self, fragment_ids: Iterable[FragmentId]) -> bool:
        """Tell whether the vectors of these fragments are in memory or mapped."""
        return all(self.key(each) in self._cache for each in fragment_ids)

    def pointers(
        self, row_addresses: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], object] | None:
        """Return the memory address of each row's vector, None when not all are mapped.

        With them comes what keeps that memory mapped: another thread may map a file anew at any
        moment, and the old mapping goes with its last owner.

        Parameters
        ----------
        row_addresses
            Shape ``(n,)``, not empty: live rows of this version.
        """
        mapped = self.mapped_runs(row_addresses)
        return None if mapped is None else (mapped.pointers(row_addresses), mapped)

    def mapped_runs(self, row_addresses: NDArray[np.uint64]) -> MappedRuns | None:
        """Return a table of runs that all of these rows lie in, None when one cannot be mapped.

        Every file is looked up in the store at each use, which checks that it is still whole.

        Parameters
        ----------
        row_addresses
            Shape ``(n,)``, not empty: live rows of this version.
        """
        wanted = _fragments_of(row_addresses)
        mapped = self._mapped
        fresh: dict[int, VectorRuns] = {}
        for fragment_id in wanted:
            held = mapped.runs.get(fragment_id)
            if held is None or not self._is_current(held):
                runs = self._map(self._fragments[fragment_id])
                if runs is None:
                    return None
                fresh[fragment_id] = runs
        if fresh:
            with self._lock:
                mapped = MappedRuns(self.row_bytes, {**self._mapped.runs, **fresh})
                self._mapped = mapped
        return mapped

    def held_runs(self, fragment_ids: Iterable[int]) -> MappedRuns | None:
        """Return the same table for all rows of some fragments, None when one is not in it yet."""
        mapped = self._mapped
        for fragment_id in fragment_ids:
            held = mapped.runs.get(fragment_id)
            if held is None or not self._is_current(held):
                return None
        return mapped

    def _is_current(self, runs: VectorRuns) -> bool:
        place = runs.mapped_file
        return place is not None and place.scheduler.store.map(place.path) is runs.owners[0]

    def key(self, fragment_id: FragmentId) -> CacheKey:
        """Name the vectors of a fragment by the file that holds them, which many versions share."""
        fragment = self._fragments[fragment_id]
        field_id = next(self.field.leaves()).id  # lists have no column of their own in all files
        for data_file in fragment.data_files:
            if field_id in data_file.columns:
                store, path = self._snapshot.data_place(data_file).key
                return CacheKey("vectors", store, (path, data_file.columns[field_id]))
        store = self._snapshot.scheduler.store.key
        return CacheKey("vectors", store, (fragment.physical_rows, self.type))

    def _load(self, fragment: Fragment) -> VectorRuns:
        mapped = self._map(fragment)
        return self._decode(fragment) if mapped is None else mapped

    def _map(self, fragment: Fragment) -> VectorRuns | None:
        """Map the column's pages where they lie raw, whole and aligned in a local file."""
        if not self.type.is_stored_ready:
            return None
        stored = self._files.columns(self._snapshot, fragment, [self.field])
        if not stored:
            return None
        reader, place = stored[0].reader, stored[0].place
        rows = map_rows(
            reader,
            stored[0].targets[0].columns[self.field.id],
            place.scheduler.store,
            row_bytes=self.row_bytes,
            alignment=self.type.memory_type.itemsize,
        )
        if rows is None:
            return None
        num_rows = rows.num_rows
        self._check_rows(fragment, reader.path, int(num_rows.sum()))
        return VectorRuns(
            addresses=rows.addresses,
            first_offsets=rows.first_rows[:-1],
            num_rows=num_rows,
            num_vectors=fragment.physical_rows,
            is_valid=None,
            owners=(rows.mapping,),
            mapped_file=place,
            nbytes=3 * num_rows.nbytes,
        )

    def _decode(self, fragment: Fragment) -> VectorRuns:
        array = self._read(fragment)
        if self.type.is_multi:
            vectors, rows = as_lists(array, self.type)
            return _one_run(rows, rows[:, 1] > 0, vectors)
        vectors, is_valid = as_vectors(array, self.type)
        return _one_run(vectors, is_valid, vectors)

    def _read(self, fragment: Fragment) -> pa.Array:
        stored = self._files.columns(self._snapshot, fragment, [self.field])
        if not stored:  # added to the schema after this fragment was written
            return pa.nulls(fragment.physical_rows, arrow_type(self.field))
        reader, targets = stored[0].reader, stored[0].targets
        (array,) = reader.read(targets, [(0, fragment.physical_rows)])
        self._check_rows(fragment, reader.path, len(array))
        return array

    def _check_rows(self, fragment: Fragment, path: str, found: int) -> None:
        if found != fragment.physical_rows:
            raise CorruptFileError(
                path,
                f'column "{self.field.name}" has {found} rows, fragment {fragment.id} has'
                f" {fragment.physical_rows}",
            )


def _one_run(
    rows: NDArray[np.generic], is_valid: NDArray[np.bool_] | None, vectors: NDArray[np.generic]
) -> VectorRuns:
    nbytes = vectors.nbytes + (0 if rows is vectors else rows.nbytes)
    return VectorRuns(
        addresses=np.array([address_of(rows)], np.int64),
        first_offsets=np.zeros(1, np.int64),
        num_rows=np.array([len(rows)], np.int64),
        num_vectors=len(vectors),
        is_valid=is_valid,
        owners=(rows, vectors),
        mapped_file=None,
        nbytes=nbytes + (0 if is_valid is None else is_valid.nbytes),
    )


class MappedRuns:
    """Runs of all mapped fragments in one ascending table; never changed once made.

    Keeps the memory mapped.

    Attributes
    ----------
    table
        The address of the first row of each run, shape ``(r,)``, ascending, and where in memory
        its vector lies.
    """

    def __init__(self, row_bytes: int, runs: dict[int, VectorRuns] | None = None) -> None:
        self.runs = {} if runs is None else runs
        self._row_bytes = row_bytes
        ordered = sorted(self.runs.items())
        fragments = [np.full(len(r.addresses), f, np.uint64) for f, r in ordered]
        first_offsets = [r.first_offsets for _, r in ordered]
        first = (
            (np.concatenate(fragments) << np.uint64(32))
            | np.concatenate(first_offsets).astype(np.uint64)
            if ordered
            else np.empty(0, np.uint64)
        )
        addresses = (
            np.concatenate([r.addresses for _, r in ordered]) if ordered else np.empty(0, np.int64)
        )
        self.table: tuple[NDArray[np.uint64], NDArray[np.int64]] = (first, addresses)

    def pointers(self, row_addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the memory address of each row's vector, shape ``(n,)``."""
        return pointers_to_rows(row_addresses, *self.table, self._row_bytes)


def _fragments_of(row_addresses: NDArray[np.uint64]) -> list[FragmentId]:
    largest = largest_of_one_fragment(row_addresses)
    if largest is not None:  # the usual case, worth a short way
        return [FragmentId(largest >> OFFSET_BITS)]
    return [FragmentId(each) for each in np.unique(fragment_of(row_addresses)).tolist()]
