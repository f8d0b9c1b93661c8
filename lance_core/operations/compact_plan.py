"""Which fragments are worth compacting, and which of them together."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.errors import InvalidRequestError
from lance_core.index.coverage import effective_coverage
from lance_core.operations.compact_config import compaction_setting, truth
from lance_core.table.reuse_of_version import reuse_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance_core.ids import FragmentId
    from lance_core.table.files import TableFiles
    from lance_core.table.fragment import Fragment
    from lance_core.table.snapshot import Snapshot

_TARGET_ROWS = 1 << 20
_DELETIONS_THRESHOLD = 0.1
_MAX_BYTES_PER_FILE = 90 << 30
_LARGEST_FRAGMENT = 1 << 32


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """What a compaction makes of a dataset.

    Parameters
    ----------
    target_rows_per_fragment
        Fragments of fewer rows are joined with their neighbours; new ones have no more.
    deletions_threshold
        Fragments of which a larger share is deleted are written anew; None = deleted rows alone
        are no reason to.
    max_bytes_per_file
        As for writing: bytes of rows, before encoding, after which a fragment takes no more.

    Raises
    ------
    InvalidRequestError
        A number makes no sense.
    """

    target_rows_per_fragment: int = _TARGET_ROWS
    deletions_threshold: float | None = _DELETIONS_THRESHOLD
    max_bytes_per_file: int = _MAX_BYTES_PER_FILE

    def __post_init__(self) -> None:
        _check_count("target_rows_per_fragment", self.target_rows_per_fragment, _LARGEST_FRAGMENT)
        _check_count("max_bytes_per_file", self.max_bytes_per_file, sys.maxsize)
        threshold = self.deletions_threshold
        if threshold is not None and not _is_share(threshold):
            raise InvalidRequestError(f"deletions_threshold is {threshold!r}; give 0 to 1, or None")

    @classmethod
    def of_config(cls, config: Mapping[str, str]) -> CompactionOptions:
        """Return what a dataset's configuration asks for; what it leaves out is the usual.

        Raises
        ------
        InvalidRequestError
            A value cannot be understood; names the key.
        """
        materializes = compaction_setting(config, "materialize_deletions", truth)
        threshold = compaction_setting(config, "materialize_deletions_threshold", float)
        rows = compaction_setting(config, "target_rows_per_fragment", int)
        num_bytes = compaction_setting(config, "max_bytes_per_file", int)
        threshold = _DELETIONS_THRESHOLD if threshold is None else min(max(threshold, 0.0), 1.0)
        return cls(
            _TARGET_ROWS if rows is None else rows,
            None if materializes is False else threshold,
            _MAX_BYTES_PER_FILE if num_bytes is None else num_bytes,
        )


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Fragments to be written anew together, in the order of their rows; can be pickled."""

    read_version: int
    fragment_ids: tuple[FragmentId, ...]
    options: CompactionOptions


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A fragment that a compaction may take in."""

    id: FragmentId
    num_live_rows: int
    is_worth_it_alone: bool
    coverage: tuple[int, ...]


def plan_compaction(
    files: TableFiles,
    snapshot: Snapshot,
    options: CompactionOptions,
    *,
    among: BitMap | None = None,
) -> list[CompactionTask]:
    """Find the groups of fragments to compact; none where nothing would be gained.

    Parameters
    ----------
    files
        Opens deletion files, where old writers did not say how many rows are deleted.
    snapshot
        The version.
    options
        What is wanted.
    among
        Ids of the fragments that may be taken in, such as those of groups that others have changed
        since they were planned; None = all.

    Notes
    -----
    Groups are those of pylance 14.0.2 (compared over random tables): neighbours in the manifest, so
    that the order of rows stays; covered by the same index segments, so that no segment loses rows;
    cut as soon as a group fills a fragment and what is left fills another one.
    """
    tasks: list[CompactionTask] = []
    for run in _runs(files, snapshot, options, among):
        for group in _cut(run, options.target_rows_per_fragment):
            if len(group) > 1 or group[0].is_worth_it_alone:
                ids = tuple(each.id for each in group)
                tasks.append(CompactionTask(snapshot.version, ids, options))
    return tasks


def _runs(
    files: TableFiles, snapshot: Snapshot, options: CompactionOptions, among: BitMap | None
) -> Iterator[list[_Candidate]]:
    """Yield neighbouring candidates of equal coverage."""
    coverages = _coverages(snapshot)
    run: list[_Candidate] = []
    for fragment in snapshot.fragments:
        may_be_taken = among is None or fragment.id in among
        candidate = (
            _candidate(files, snapshot, fragment, options, coverages) if may_be_taken else None
        )
        if run and (candidate is None or candidate.coverage != run[0].coverage):
            yield run
            run = []
        if candidate is not None:
            run.append(candidate)
    if run:
        yield run


def _candidate(
    files: TableFiles,
    snapshot: Snapshot,
    fragment: Fragment,
    options: CompactionOptions,
    coverages: Sequence[BitMap],
) -> _Candidate | None:
    num_live_rows = files.num_live_rows(snapshot, fragment)
    threshold = options.deletions_threshold
    num_deleted_rows = fragment.physical_rows - num_live_rows
    has_many_deleted = (
        threshold is not None
        and num_deleted_rows > 0
        and num_deleted_rows / fragment.physical_rows > threshold
    )
    if not has_many_deleted and fragment.physical_rows >= options.target_rows_per_fragment:
        return None
    coverage = tuple(place for place, covered in enumerate(coverages) if fragment.id in covered)
    return _Candidate(fragment.id, num_live_rows, has_many_deleted, coverage)


def _coverages(snapshot: Snapshot) -> list[BitMap]:
    live = BitMap(snapshot.fragments_by_id)
    segments = [segment for segment in snapshot.indices if not segment.is_system]
    if len(segments) == 0:
        return []
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    return [effective_coverage(segment, live, history) for segment in segments]


def _cut(run: list[_Candidate], target_rows: int) -> Iterator[list[_Candidate]]:
    left = sum(each.num_live_rows for each in run)
    group: list[_Candidate] = []
    num_rows = 0
    for candidate in run:
        if num_rows >= target_rows and left >= target_rows:
            yield group
            group, num_rows = [], 0
        group.append(candidate)
        num_rows += candidate.num_live_rows
        left -= candidate.num_live_rows
    yield group


def _check_count(name: str, value: object, largest: int) -> None:
    if not isinstance(value, int) or not 1 <= value <= largest:
        raise InvalidRequestError(f"{name} is {value!r}; give a number from 1 to {largest}")


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1
