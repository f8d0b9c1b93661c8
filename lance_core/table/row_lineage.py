"""Stable row ids and versions of the rows that a commit adds, moves or changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import InvalidRequestError
from lance_core.proto import table_pb2
from lance_core.row_set import bitmap_from_bytes, bitmap_offsets
from lance_core.table.flags import Feature
from lance_core.table.row_ids import decode_row_ids, encode_row_ids
from lance_core.table.row_versions import decode_row_versions, encode_row_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

Fragment = table_pb2.DataFragment

_PATH = "the newest manifest"


def has_stable_row_ids(manifest: table_pb2.Manifest) -> bool:
    """Tell whether rows have ids that stay when they move."""
    return bool(manifest.reader_feature_flags & Feature.STABLE_ROW_IDS)


def add_lineage(
    manifest: table_pb2.Manifest,
    added: Iterable[Fragment],
    version: int,
    sources: Sequence[Fragment] = (),
) -> bool:
    """Give the rows of new fragments their ids and versions.

    Parameters
    ----------
    manifest
        The next version; ``next_row_id`` moves on.
    added
        Fragments to complete. Rows that were moved come first and have their ids already.
    version
        Number of the next version.
    sources
        The fragments that rows were moved from, as they were before.

    Returns
    -------
    bool
        Whether all rows of the fragments were moved.

    Raises
    ------
    InvalidRequestError
        A fragment has more row ids than rows, or ids that are not in ``sources``.

    Notes
    -----
    Lance table format, section "Stable row ids"; verified against pylance 14.0.2: a moved row keeps
    the version that created it.
    """
    all_moved = True
    for fragment in added:
        moved = _row_ids(fragment, "the transaction")
        num_new = fragment.physical_rows - len(moved)
        first = manifest.next_row_id
        manifest.next_row_id += num_new
        new = np.arange(first, first + num_new, dtype=np.uint64)
        created = np.full(fragment.physical_rows, version, np.uint64)
        created[: len(moved)] = _created(moved, sources)
        fragment.inline_row_ids = encode_row_ids(np.concatenate((moved, new)))
        fragment.inline_created_at_versions = encode_row_versions(created)
        fragment.inline_last_updated_at_versions = encode_row_versions(
            np.full(fragment.physical_rows, version, np.uint64)
        )
        all_moved = all_moved and num_new == 0
    return all_moved


def stamp_updated_rows(fragment: Fragment, offsets: bytes, version: int) -> None:
    """Set the version of rows that were changed in place.

    Parameters
    ----------
    fragment
        The fragment; one without versions stays without.
    offsets
        Serialized roaring bitmap of the rows.
    version
        Number of the next version.
    """
    if not fragment.HasField("inline_last_updated_at_versions"):
        return
    stored = decode_row_versions(fragment.inline_last_updated_at_versions, _PATH)
    versions = stored.at(np.arange(len(stored)))
    rows = bitmap_offsets(bitmap_from_bytes(offsets, "the transaction"))
    if len(rows) > 0 and rows[-1] >= len(versions):
        raise InvalidRequestError(f"fragment {fragment.id} has no row {rows[-1]} to be updated")
    versions[rows] = version
    fragment.inline_last_updated_at_versions = encode_row_versions(versions)


def stamp_all_rows(fragment: Fragment, version: int) -> None:
    """Set the version of all rows of a fragment, of which a column was added or changed."""
    if fragment.HasField("inline_last_updated_at_versions"):
        versions = np.full(fragment.physical_rows, version, np.uint64)
        fragment.inline_last_updated_at_versions = encode_row_versions(versions)


def check_complete(fragments: Iterable[Fragment]) -> None:
    """Refuse fragments without row ids, where all rows have them.

    Raises
    ------
    InvalidRequestError
        Names the fragment.
    """
    for fragment in fragments:
        if fragment.WhichOneof("row_ids") is None:
            raise InvalidRequestError(f"fragment {fragment.id} has no row ids; give it those moved")


def _created(row_ids: NDArray[np.uint64], sources: Sequence[Fragment]) -> NDArray[np.uint64]:
    """Return the version that created each row, shape ``(n,)``."""
    known = [np.empty(0, np.uint64), *(_row_ids(fragment, _PATH) for fragment in sources)]
    versions = [np.empty(0, np.uint64), *(_versions(fragment) for fragment in sources)]
    ids, created = np.concatenate(known), np.concatenate(versions)
    order = np.argsort(ids, kind="stable")
    places = np.searchsorted(ids, row_ids, sorter=order)
    found = places < len(ids)
    found[found] = ids[order[places[found]]] == row_ids[found]
    if not found.all():
        raise InvalidRequestError(f"row {row_ids[~found][0]} is in no fragment that was changed")
    answer: NDArray[np.uint64] = created[order[places]]
    return answer


def _row_ids(fragment: Fragment, path: str) -> NDArray[np.uint64]:
    stored = decode_row_ids(fragment.inline_row_ids, path)
    if len(stored) > fragment.physical_rows:
        raise InvalidRequestError(
            f"{len(stored)} row ids are given for {fragment.physical_rows} rows"
        )
    return stored.at(np.arange(len(stored)))


def _versions(fragment: Fragment) -> NDArray[np.uint64]:
    """Return the version that created each physical row; 1 where nobody recorded it."""
    if not fragment.HasField("inline_created_at_versions"):
        return np.ones(fragment.physical_rows, np.uint64)
    stored = decode_row_versions(fragment.inline_created_at_versions, _PATH)
    return stored.at(np.arange(len(stored)))
