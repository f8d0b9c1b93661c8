"""Writing the zones of several segments into one, as their files hold them.

A zone lies in one fragment, so segments of different fragments share none: what their files know of
zones stays as it is. Zones cannot follow rows that moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.scalar.null_rows import ZONE_NULLS
from lance_core.index.scalar.tree_map import encode_tree_map
from lance_core.index.scalar.writers.growing_set import GrowingSet
from lance_core.index.scalar.writers.stored_parameters import parameters_in, parameters_metadata
from lance_core.index.scalar.writers.stored_sets import stored_names
from lance_core.index.stored_columns import find_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.index.row_routes import RowRoute
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.null_rows import NullRows
    from lance_core.index.scalar.zone_segment import ZoneSegment
    from lance_core.index.segment_files import SegmentFiles

_MOST_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class StoredZones:
    """An opened segment, whose rows have not moved.

    Parameters
    ----------
    segment
        The segment.
    route
        The route of its rows.
    nulls
        Its rows without a value.
    """

    segment: ZoneSegment
    route: RowRoute
    nulls: NullRows

    @classmethod
    def of(cls, segment: ZoneSegment, route: RowRoute) -> StoredZones:
        """Check that a segment can be relied on; `UnusableSegmentError` if not."""
        if segment.nulls is None:
            raise UnusableSegmentError(f"a {segment.kind} without a set of null rows is too old")
        # What the manifest says is no proof: pylance's commits name there the fragments that rows
        # have moved to, though files name the ones from before (observed with 14.0.2).
        if len(route.fragments - segment.zones.fragments) > 0:
            raise UnusableSegmentError(
                f"a {segment.kind} index names stretches of rows, not rows that could be followed"
            )
        return cls(segment, route, segment.nulls)

    def kept(self) -> NDArray[np.int64]:
        """Return which zones the new segment has."""
        own = np.array(self.route.fragments, np.int64)
        return np.flatnonzero(np.isin(self.segment.zones.fragment_ids, own))

    def read(self, schema: pa.Schema, numbers: NDArray[np.int64]) -> list[pa.Array]:
        """Read what the file has of some zones, ``numbers`` ascending."""
        reader = self.segment.reader
        targets = find_stored(reader, {field.name: field.type for field in schema})
        edges = np.flatnonzero(np.diff(numbers) != 1) + 1
        runs = np.split(numbers, edges)
        return reader.read(targets, [(int(run[0]), int(run[-1]) + 1) for run in runs])


def merge_zones(
    parts: Sequence[StoredZones],
    schema: pa.Schema,
    file_name: str,
    files: SegmentFiles,
    read_bytes: int,
) -> None:
    """Write the file of a segment with the zones of others, in the order of their rows.

    Parameters
    ----------
    parts
        One or more.
    schema
        Of the file.
    file_name
        Its name.
    files
        Takes it.
    read_bytes
        About how much of the files is read at once.

    Raises
    ------
    UnusableSegmentError
        Zones or filters differ in size, or files lack a column.
    InvalidRequestError
        The segments are of several kinds.
    CorruptFileError
        What is read contradicts the format.

    Notes
    -----
    Rows that were deleted since the zones were written are still counted there; so they are by
    pylance 14.0.2. The set of null rows loses them.
    """
    metadata = _metadata(parts)
    places = _Places.of(parts)
    with files.create(file_name, schema) as writer:
        step = _step(parts, read_bytes)
        for start in range(0, max(len(places), 1), step):
            columns = places.read(parts, schema, start, start + step)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        number = writer.add_global_buffer(encode_tree_map(_nulls(parts)))
        writer.add_schema_metadata(ZONE_NULLS, str(number))
        for key, value in metadata.items():
            writer.add_schema_metadata(key, value)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Zones in their new order: shape ``(z,)`` each, the part and the row of its file."""

    parts: NDArray[np.int64]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, parts: Sequence[StoredZones]) -> _Places:
        kept = [part.kept() for part in parts]
        numbers = np.repeat(np.arange(len(parts)), [len(each) for each in kept])
        zones = [part.segment.zones for part in parts]
        ids = [zone.fragment_ids[own] for zone, own in zip(zones, kept, strict=True)]
        starts = [zone.starts[own] for zone, own in zip(zones, kept, strict=True)]
        order = np.lexsort((np.concatenate(starts), np.concatenate(ids)))
        return cls(numbers[order], np.concatenate(kept)[order])

    def read(
        self, parts: Sequence[StoredZones], schema: pa.Schema, start: int, stop: int
    ) -> list[pa.Array]:
        """Read the zones ``start`` to ``stop - 1``."""
        some, rows = self.parts[start:stop], self.rows[start:stop]
        order = np.lexsort((rows, some))  # as they are read: part by part
        found = [
            parts[number].read(schema, np.sort(rows[some == number]))
            for number in np.unique(some).tolist()
        ]
        if len(found) == 0:
            return [pa.array([], field.type) for field in schema]
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        columns = [pa.concat_arrays(pieces) for pieces in zip(*found, strict=True)]
        return columns if len(found) == 1 and _rises(order) else [c.take(back) for c in columns]


def _rises(order: NDArray[np.int64]) -> bool:
    return bool((np.diff(order) > 0).all())


def _metadata(parts: Sequence[StoredZones]) -> dict[str, str]:
    """Return what the file says of the size of zones, on which all have to agree."""
    last = parts[-1].segment
    if any(part.segment.kind is not last.kind for part in parts):
        raise InvalidRequestError("segments of one kind can become one, not of several")
    told = [parameters_in(last.kind, part.segment.reader.schema.metadata) for part in parts]
    if any(each != told[-1] for each in told):
        raise UnusableSegmentError(f"their {last.kind} zones differ in size: {told}")
    return parameters_metadata(last.kind, told[-1])


def _step(parts: Sequence[StoredZones], read_bytes: int) -> int:
    """Return how many zones are read at once."""
    zones = sum(len(part.segment.zones) for part in parts)
    readers = [part.segment.reader for part in parts]
    num_bytes = sum(
        reader.stored_bytes([reader.target(name) for name in reader.schema.names])(
            0, reader.num_rows
        )
        for reader in readers
    )
    return min(max(int(zones * read_bytes / max(num_bytes, 1)), 1), _MOST_AT_ONCE)


def _nulls(parts: Sequence[StoredZones]) -> FragmentRows:
    found = GrowingSet()
    for part in parts:
        for names in stored_names(part.nulls.rows(), part.route):
            new_names, is_kept = part.route.follow(names)
            found.add(new_names[is_kept])
    return found.rows
