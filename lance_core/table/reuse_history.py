"""The history of a Fragment Reuse Index: which fragments deferred compactions put in whose place.

A deferred compaction leaves index files alone: they go on naming rows of fragments that are gone,
and so may the stored coverage. Readers lead both through the whole history; that is always safe,
since fragment ids are never reused, and always needed, since the stored coverage does not tell
whether it has been led through already.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from pyroaring import BitMap

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.ids import FragmentId
from lance_core.proto.frag_reuse_pb2 import FragmentReuseIndexDetails

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.proto.frag_reuse_pb2 import FragmentReuseIndexDetails as Details

_LARGEST_FRAGMENT_ID = 0xFFFF_FFFE  # the last one marks a row address as a tombstone
_LARGEST_ROW_COUNT = 1 << 32


@dataclass(frozen=True, slots=True)
class FragmentDigest:
    """A fragment as it was when it was compacted, or came out of a compaction."""

    id: FragmentId
    physical_rows: int
    num_deleted_rows: int

    @property
    def num_live_rows(self) -> int:
        """Rows that were not deleted."""
        return self.physical_rows - self.num_deleted_rows


@dataclass(frozen=True)
class ReuseGroup:
    """Fragments that one compaction task read and wrote.

    Parameters
    ----------
    changed_row_addrs
        Treemap of the old rows that survived; in the order of ``old_fragments`` they fill
        ``new_fragments`` one after the other.
    old_fragments, new_fragments
        What was read and what was written, in the order of the rows, not of the ids.
    """

    changed_row_addrs: bytes
    old_fragments: tuple[FragmentDigest, ...]
    new_fragments: tuple[FragmentDigest, ...]

    @cached_property
    def old_ids(self) -> BitMap:
        """Ids of the old fragments; not to be changed."""
        return BitMap(each.id for each in self.old_fragments)

    @cached_property
    def new_ids(self) -> BitMap:
        """Ids of the new fragments; not to be changed."""
        return BitMap(each.id for each in self.new_fragments)


@dataclass(frozen=True, slots=True)
class ReuseVersion:
    """One deferred compaction; ``dataset_version`` is the version before the one it committed."""

    dataset_version: int
    groups: tuple[ReuseGroup, ...]

    @property
    def old_ids(self) -> BitMap:
        """Ids of all fragments that the compaction took out."""
        return BitMap.union(BitMap(), *(group.old_ids for group in self.groups))

    @property
    def new_ids(self) -> BitMap:
        """Ids of all fragments that it put in."""
        return BitMap.union(BitMap(), *(group.new_ids for group in self.groups))


@dataclass(frozen=True, slots=True)
class ReuseHistory:
    """All deferred compactions that indices may not have followed, oldest first."""

    versions: tuple[ReuseVersion, ...]

    @property
    def dataset_versions(self) -> frozenset[int]:
        """Versions before those that the compactions committed."""
        return frozenset(version.dataset_version for version in self.versions)

    @property
    def new_ids(self) -> BitMap:
        """Ids of all fragments that came out of a compaction, those compacted again included."""
        return BitMap.union(BitMap(), *(version.new_ids for version in self.versions))

    @property
    def num_bytes(self) -> int:
        """Bytes of the surviving row addresses, nearly all of the history."""
        return sum(
            len(group.changed_row_addrs) for version in self.versions for group in version.groups
        )

    def fold(self, fragment_ids: BitMap) -> BitMap:
        """Lead the coverage of one segment through the history.

        Parameters
        ----------
        fragment_ids
            Fragments that the segment covers, before, after or half-way through the history; dead
            ones may be among them. Never the union of several segments.

        Returns
        -------
        BitMap
            The fragments it covers now. The new fragments of a group count only if all old ones
            did. Folding once more changes nothing.

        Notes
        -----
        Lance table format, section 9.4. Writers that take fragments out of a stored bitmap store
        the folded one first.
        """
        covered = BitMap(fragment_ids)
        for version in self.versions:
            for group in version.groups:
                if covered.intersect(group.old_ids):
                    is_whole = group.old_ids.issubset(covered)
                    covered -= group.old_ids
                    if is_whole:
                        covered |= group.new_ids
        return covered


def history_from_content(content: Details.InlineContent, path: str) -> ReuseHistory:
    """Convert and check a history.

    Parameters
    ----------
    content
        The message, from the manifest or from a file of its own.
    path
        Where it was read, for errors.

    Raises
    ------
    CorruptFileError
        A number is out of range, a group's rows do not add up, or a fragment is compacted twice or
        before it was written.
    UnsupportedFeatureError
        The history is tagged: its compactions form a graph, and other rules hold for coverage.
    """
    if len(content.transitions) > 0:
        raise UnsupportedFeatureError(f"{path}: the fragment reuse index is tagged")
    history = ReuseHistory(
        tuple(
            ReuseVersion(
                version.dataset_version, tuple(_group(group, path) for group in version.groups)
            )
            for version in content.legacy_versions
        )
    )
    check_order(history, path)
    return history


def history_from_bytes(data: bytes, path: str) -> ReuseHistory:
    """Decode a history that lies in a file of its own; errors as `history_from_content`."""
    try:
        content = FragmentReuseIndexDetails.InlineContent.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(path, f"no fragment reuse history: {error}") from error
    return history_from_content(content, path)


def history_to_content(history: ReuseHistory) -> Details.InlineContent:
    """Convert a history to its message."""
    return FragmentReuseIndexDetails.InlineContent(
        legacy_versions=[
            FragmentReuseIndexDetails.Version(
                dataset_version=version.dataset_version,
                groups=[
                    FragmentReuseIndexDetails.Group(
                        changed_row_addrs=group.changed_row_addrs,
                        old_fragments=_digests_to_proto(group.old_fragments),
                        new_fragments=_digests_to_proto(group.new_fragments),
                    )
                    for group in version.groups
                ],
            )
            for version in history.versions
        ]
    )


def _group(message: Details.Group, path: str) -> ReuseGroup:
    group = ReuseGroup(
        changed_row_addrs=message.changed_row_addrs,
        old_fragments=_digests(message.old_fragments, path),
        new_fragments=_digests(message.new_fragments, path),
    )
    survived = sum(each.num_live_rows for each in group.old_fragments)
    written = sum(each.physical_rows for each in group.new_fragments)
    if survived != written:
        raise CorruptFileError(
            path, f"{survived} rows survived a compaction that wrote {written} rows"
        )
    return group


def _digests(messages: Iterable[Details.FragmentDigest], path: str) -> tuple[FragmentDigest, ...]:
    return tuple(_digest(message, path) for message in messages)


def _digest(message: Details.FragmentDigest, path: str) -> FragmentDigest:
    if message.id > _LARGEST_FRAGMENT_ID:
        raise CorruptFileError(path, f"fragment id {message.id} does not fit a row address")
    if not message.num_deleted_rows <= message.physical_rows <= _LARGEST_ROW_COUNT:
        raise CorruptFileError(
            path,
            f"fragment {message.id} has {message.physical_rows} rows, "
            f"{message.num_deleted_rows} of them deleted",
        )
    return FragmentDigest(FragmentId(message.id), message.physical_rows, message.num_deleted_rows)


def _digests_to_proto(digests: Iterable[FragmentDigest]) -> list[Details.FragmentDigest]:
    return [
        FragmentReuseIndexDetails.FragmentDigest(
            id=each.id,
            physical_rows=each.physical_rows,
            num_deleted_rows=each.num_deleted_rows,
        )
        for each in digests
    ]


def check_order(history: ReuseHistory, path: str) -> None:
    """Check that every fragment is compacted once at most, and only after it was written.

    So an address may be followed from fragment to fragment, whatever the version, and comes to an
    end.

    Raises
    ------
    CorruptFileError
        It is not so in the history read from ``path``.
    """
    gone, written = BitMap(), BitMap()
    for version in history.versions:
        digests = [d for group in version.groups for d in group.old_fragments]
        old = version.old_ids
        if len(old) != len(digests) or old.intersect(gone):
            raise CorruptFileError(path, "a fragment was compacted twice")
        gone |= old
        results = [d for group in version.groups for d in group.new_fragments]
        new = version.new_ids
        if len(new) != len(results) or new.intersect(gone) or new.intersect(written):
            raise CorruptFileError(path, "a compaction wrote a fragment that was there before")
        written |= new
