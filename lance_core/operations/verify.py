"""Verifying a dataset: every version, every file, every name, against the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import ObjectNotFoundError
from lance_core.operations.progress import no_progress
from lance_core.operations.verify_finding import Findings
from lance_core.operations.verify_fragment import FragmentChecker
from lance_core.operations.verify_indices import IndexChecker
from lance_core.operations.verify_manifest import check_manifest
from lance_core.operations.verify_refs import check_refs
from lance_core.table.snapshot import open_listed
from lance_core.table.transaction import transaction_path
from lance_core.table.transaction_from_proto import transaction_from_bytes
from lance_core.table.transaction_of_version import inline_transaction
from lance_core.table.versions import list_manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectStore
    from lance_core.operations.progress import Progress
    from lance_core.operations.verify_finding import Finding
    from lance_core.table.base_paths import OpenBase
    from lance_core.table.files import TableFiles
    from lance_core.table.snapshot import Snapshot
    from lance_core.table.versions import ManifestLocation


def verify(
    files: TableFiles,
    scheduler: RangeScheduler,
    refs: ObjectStore,
    open_base: OpenBase,
    *,
    progress: Progress = no_progress,
) -> Iterator[Finding]:
    """Read all files of a dataset, and check all that the format demands of them.

    Files that no version names are nobody's fault: cleanup removes them. Other branches are
    histories of their own (``verify_branches``), the sources of clones are datasets of their own.

    Parameters
    ----------
    files
        Opens files; what they hold is not cached.
    scheduler
        Reads from the root of the dataset or branch.
    refs
        Root of the main branch, where tags and branches are recorded.
    open_base
        Gives the means to read files below base paths.
    progress
        Called with how many versions are done, and of how many.

    Yields
    ------
    Finding
        Per version, newest first, then of names; none for a dataset without fault. What needs a
        feature that this release lacks is said to be unverified.

    Raises
    ------
    DatasetNotFoundError
        There is no dataset.
    CorruptFileError
        Nobody can tell which versions there are: two schemes of naming are mixed.
    StoreError
        The store failed.
    """
    yield from verify_history(files, scheduler, open_base, progress=progress)
    findings = Findings()
    check_refs(refs, findings)
    yield from findings.drain()


def verify_history(
    files: TableFiles,
    scheduler: RangeScheduler,
    open_base: OpenBase,
    *,
    progress: Progress = no_progress,
) -> Iterator[Finding]:
    """Check all versions below one root, newest first; as `verify`, but no names."""
    findings = Findings()
    fragments, indices = FragmentChecker(files, findings), IndexChecker(findings)
    locations = list_manifests(scheduler.store)
    for done, location in enumerate(reversed(locations)):
        progress(done, len(locations))
        with findings.of(location.meta.path):
            snapshot = open_listed(scheduler, location, open_base)
            check_manifest(snapshot.manifest, findings)
            fragments.check(snapshot)
            indices.check(snapshot)
            _check_transaction(snapshot, location, findings)
        yield from findings.drain()


def _check_transaction(snapshot: Snapshot, location: ManifestLocation, findings: Findings) -> None:
    """Check that whoever commits later can tell what the version changed."""
    name = snapshot.manifest.message.transaction_file
    if name == "":  # old writers recorded none
        return
    path, store = transaction_path(name), snapshot.scheduler.store
    inline = inline_transaction(snapshot.scheduler, snapshot.manifest, location.meta)
    if inline is not None:
        transaction_from_bytes(inline, location.meta.path)
    try:
        size = store.head(path).size
    except ObjectNotFoundError:  # cleanups take the file; the manifest may hold the transaction too
        findings.expect(inline is not None, path, "named by the manifest but missing")
        return
    filed = store.get_range(path, 0, size)
    transaction_from_bytes(filed, path)
    findings.expect(
        inline is None or filed == inline,
        path,
        f"is another transaction than {location.meta.path} has",
    )
