"""Verifying a dataset with all its branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import ObjectNotFoundError
from lance_core.operations.progress import no_progress
from lance_core.operations.verify import verify, verify_history
from lance_core.operations.verify_finding import Finding, Findings
from lance_core.table.dataset_stores import uri_below
from lance_core.table.naming import DATA_FOLDER, DELETIONS_FOLDER, INDICES_FOLDER, VERSIONS_FOLDER
from lance_core.table.refs import branch_names, branch_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectStore
    from lance_core.operations.progress import Progress
    from lance_core.table.base_paths import OpenBase
    from lance_core.table.files import TableFiles

_SHARED = (f"{DATA_FOLDER}/", f"{DELETIONS_FOLDER}/", f"{INDICES_FOLDER}/")
"""Where files lie that a branch may read from the history that it began in."""


def verify_with_branches(
    files: TableFiles,
    root: RangeScheduler,
    open_base: OpenBase,
    *,
    progress: Progress = no_progress,
) -> Iterator[Finding]:
    """Verify the main branch, then every other; as `verify`, places being below the main root.

    A branch that cannot be opened is a fault, and so is one whose folder is gone.
    """
    known: set[Finding] = set()
    for finding in verify(files, root, root.store, open_base, progress=progress):
        known.add(finding)
        yield finding
    for name in branch_names(root.store):
        yield from verify_branch(files, root, name, open_base, known, progress=progress)


def verify_branch(
    files: TableFiles,
    root: RangeScheduler,
    name: str,
    open_base: OpenBase,
    known: Set[Finding] = frozenset(),
    *,
    progress: Progress = no_progress,
) -> Iterator[Finding]:
    """Verify one branch; as `verify`, places being below the main root, which ``root`` reads.

    What is ``known`` of files of the main branch is not said again.
    """
    folder, findings = branch_root(name), Findings()
    with findings.of(VERSIONS_FOLDER):
        branch = open_base(uri_below(root.store.uri, folder))
        for finding in verify_history(files, branch, open_base, progress=progress):
            if not finding.where.startswith(_SHARED):
                yield _below(folder, finding)
            elif finding not in known:
                yield finding if _is_of_main(finding, branch, root) else _below(folder, finding)
    for finding in findings.drain():
        yield _below(folder, finding)


def _is_of_main(finding: Finding, branch: RangeScheduler, root: RangeScheduler) -> bool:
    return not _exists(branch.store, finding.where) and _exists(root.store, finding.where)


def _below(folder: str, finding: Finding) -> Finding:
    return Finding(f"{folder}/{finding.where}", finding.what)


def _exists(store: ObjectStore, path: str) -> bool:
    try:
        store.head(path)
    except ObjectNotFoundError:
        return False
    return True
