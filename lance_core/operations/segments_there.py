"""Segments that callers hand over: whether the dataset has what they say."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.io.waiting import for_each
from lance_core.table.index_metadata import index_from_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.proto import table_pb2
    from lance_core.table.snapshot import Snapshot


def check_there(snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata]) -> None:
    """Check that a dataset has the columns and all files of segments: searches rely on them.

    Lists the folder of each, and opens none.

    Raises
    ------
    InvalidRequestError
        It has not: a segment was built from another dataset, or a cleanup took it for left behind,
        or its column was dropped.
    """
    for_each(snapshot.scheduler.store, partial(_check, snapshot), segments)


def _check(snapshot: Snapshot, segment: table_pb2.IndexMetadata) -> None:
    if any(id_ not in {each.id for each in snapshot.schema.walk()} for id_ in segment.fields):
        raise InvalidRequestError(
            f"a segment of index {segment.name!r} is on a column that version {snapshot.version}"
            " does not have"
        )
    try:
        metadata = index_from_proto(segment, snapshot.manifest.path)
        place = snapshot.index_place(metadata)
    except CorruptFileError as error:
        raise InvalidRequestError(f"that is no segment of this dataset: {error}") from error
    sizes = {each.path: each.size for each in place.scheduler.store.list_tree(place.path)}
    wanted = {place.below(each.path).path: each.size for each in metadata.files}
    lost = sorted(path for path, size in wanted.items() if sizes.get(path) != size)
    if len(wanted) == 0 and len(sizes) == 0 and len(metadata.fragment_bitmap or ()) > 0:
        lost = [place.path]  # old writers did not record files
    if len(lost) > 0:
        raise InvalidRequestError(
            f"a file of a segment of index {segment.name!r} is not in this dataset, or is another"
            f" one: {lost[0]}; build the segment anew"
        )
