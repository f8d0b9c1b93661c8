"""Keeping a dataset small and sound: compaction, cleanup, verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from lance_core.dataset.places import branch_of, root_of
from lance_core.dataset.reads import DatasetReads
from lance_core.errors import InvalidRequestError
from lance_core.operations.cleanup import clean_up
from lance_core.operations.cleanup_plan import CleanupOptions
from lance_core.operations.compact import compact
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.compact_trim import trim_reuse_index
from lance_core.operations.progress import no_progress
from lance_core.operations.remap_indices import remap_indices
from lance_core.operations.verify_branches import verify_branch, verify_with_branches
from lance_core.operations.write_segment import MEMORY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta
    from typing import Self

    from lance_core.operations.cleanup import CleanupReport
    from lance_core.operations.progress import Progress
    from lance_core.operations.verify_finding import Finding
    from lance_core.table.snapshot import Snapshot

T = TypeVar("T")


class DatasetMaintenance(DatasetReads):
    """What can be done to a dataset without changing what its rows say."""

    def compact(
        self,
        *,
        indices: Literal["defer", "drop_coverage", "remap"] | None = None,
        target_rows_per_fragment: int | None = None,
        deletions_threshold: float | None = None,
        max_bytes_per_file: int | None = None,
        memory_bytes: int = MEMORY_BYTES,
        progress: Progress = no_progress,
    ) -> Self:
        """Write fragments that are small, or full of deleted rows, anew as few whole ones.

        Rows keep their order. Where nothing is to be gained, nothing is committed.

        Parameters
        ----------
        indices
            What becomes of indices on rows that move. ``remap``, the usual, writes their files
            anew, but for those of zone maps and Bloom filters: searches scan the new fragments in
            place of these until they are indexed again. ``drop_coverage`` does so with all indices;
            ``defer`` leaves them as they are and records where rows are now, in the Fragment Reuse
            Index, which `remap_indices` lets them follow later.
        target_rows_per_fragment
            Fragments of fewer rows are joined with neighbours.
        deletions_threshold
            Fragments of which a larger share is deleted are written anew.
        max_bytes_per_file
            Bytes of rows, before encoding, that a fragment holds at most.
        memory_bytes
            About how much memory may be taken to write indices anew.
        progress
            Called with how many groups of fragments are written, and of how many.

        Returns
        -------
        Dataset
            At the version that was committed. What is None is taken from the configuration of the
            dataset, as ``lance.compaction.target_rows_per_fragment``.

        Raises
        ------
        InvalidRequestError
            A number makes no sense, or it is too little memory to write indices of vectors anew.
        UnsupportedFeatureError
            Indices cannot follow in the way asked for; names another way.
        CommitConflictError
            Others changed the same rows again and again.
        """
        config = self.snapshot.manifest.config
        usual = CompactionOptions.of_config(config)
        options = CompactionOptions(
            _given(target_rows_per_fragment, usual.target_rows_per_fragment),
            _given(deletions_threshold, usual.deletions_threshold),
            _given(max_bytes_per_file, usual.max_bytes_per_file),
        )
        treatment = IndexTreatment.of_config(config) if indices is None else _treatment(indices)
        files = self.session.files
        return self._of(
            compact(
                files,
                self.snapshot,
                options,
                treatment,
                memory_bytes=memory_bytes,
                progress=progress,
            )
        )

    def remap_indices(
        self,
        names: Sequence[str] | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        progress: Progress = no_progress,
    ) -> Self:
        """Write indices anew that have deferred compactions to follow; columns are not read.

        Then `trim_reuse_index` can forget the compactions, unless a zone map or Bloom filter needs
        them, which have to be built anew.

        Parameters
        ----------
        names
            Which indices; None = all that can follow.
        memory_bytes
            About how much memory may be taken; what does not fit is put on disk meanwhile.
        progress
            Called with how many segments are done, and of how many.

        Raises
        ------
        IndexNotFoundError
            There is no index of a name.
        InvalidRequestError
            An index that is named cannot follow, or it is too little memory for vectors.
        CommitConflictError
            Others changed the indices again and again.
        """
        files = self.session.files
        return self._of(
            remap_indices(files, self.snapshot, names, memory_bytes=memory_bytes, progress=progress)
        )

    def trim_reuse_index(self) -> Self:
        """Remove deferred compactions that every index has followed from the Fragment Reuse Index.

        Raises ``CommitConflictError`` where others changed indices again and again.
        """
        return self._of(trim_reuse_index(self.snapshot))

    def cleanup(
        self,
        *,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        versions: Sequence[int] | None = None,
        delete_unverified: bool = False,
        error_if_tagged: bool = True,
        dry_run: bool = False,
    ) -> CleanupReport:
        """Remove old versions with all files that only they need, and what failed writers left.

        The newest version stays, as do this one, those that branches began with, those that
        streams of the pipeline go on from and, with ``error_if_tagged=False``, tagged ones. Clones
        elsewhere do not keep what they need here.

        Parameters
        ----------
        older_than
            Only versions committed longer ago; 14 days where no limit is given.
        retain_versions
            Only versions before the last so many.
        versions
            Only these.
        delete_unverified
            Remove files that no version names at once instead of after 7 days; nobody else may be
            writing then.
        error_if_tagged
            Refuse to run if a tagged version is beyond the limits.
        dry_run
            Tell what would be removed, and remove nothing.

        Raises
        ------
        InvalidRequestError
            A limit makes no sense, or tagged versions are in the way.
        UnsupportedFeatureError
            Some version has a feature that this release lacks. Nothing was removed.
        """
        options = CleanupOptions(
            older_than, retain_versions, versions, delete_unverified, error_if_tagged
        )
        refs = root_of(self.snapshot).store
        return clean_up(self.snapshot, refs, branch_of(self.snapshot), options, dry_run=dry_run)

    def verify(self, *, progress: Progress = no_progress) -> Iterator[Finding]:
        """Read all files of all versions, and yield what contradicts the format; best is nothing.

        Of the main branch, other branches are read too; of another, nothing but that one. Places
        are below the root of the main branch. ``progress`` is called with how many versions of a
        branch are done, and of how many. Raises ``StoreError`` where the store fails.
        """
        branch, root = branch_of(self.snapshot), root_of(self.snapshot)
        files, open_base = self.session.files, self.snapshot.open_base
        if branch is None:
            return verify_with_branches(files, root, open_base, progress=progress)
        return verify_branch(files, root, branch, open_base, progress=progress)

    def _of(self, snapshot: Snapshot) -> Self:
        return type(self)(self.session, snapshot)


def _treatment(name: str) -> IndexTreatment:
    try:
        return IndexTreatment(name)
    except ValueError:
        names = ", ".join(IndexTreatment)
        raise InvalidRequestError(f"indices is {name!r}; take one of {names}") from None


def _given(value: T | None, usual: T) -> T:
    return usual if value is None else value
