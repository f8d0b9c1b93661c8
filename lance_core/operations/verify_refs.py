"""Checking that tags and branches name versions that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.table.naming import VERSIONS_FOLDER, parse_manifest_name
from lance_core.table.refs import (
    BRANCHES_FOLDER,
    MAIN_BRANCH,
    TAGS_FOLDER,
    branch_root,
    list_branches,
    list_tags,
)

if TYPE_CHECKING:
    from lance_core.io.store import ObjectStore
    from lance_core.operations.verify_finding import Findings


def check_refs(root: ObjectStore, findings: Findings) -> None:
    """Check the names of versions.

    Parameters
    ----------
    root
        Root of the main branch, where they are recorded.
    findings
        Takes what is wrong.
    """
    with findings.of(TAGS_FOLDER):
        for tag in list_tags(root):
            _expect_version(root, findings, f"{TAGS_FOLDER}/{tag.name}", tag.branch, tag.version)
    with findings.of(BRANCHES_FOLDER):
        for branch in list_branches(root):
            where = f"{BRANCHES_FOLDER}/{branch.name}"
            _expect_version(root, findings, where, branch.parent_branch, branch.parent_version)
            findings.expect(
                len(_versions(root, branch.name)) > 0, where, "the branch has no version"
            )


def _expect_version(
    root: ObjectStore, findings: Findings, where: str, branch: str | None, version: int
) -> None:
    name = MAIN_BRANCH if branch is None else branch
    findings.expect(
        version in _versions(root, branch), where, f"branch {name} has no version {version}"
    )


def _versions(root: ObjectStore, branch: str | None) -> set[int]:
    is_main = branch is None or branch == MAIN_BRANCH
    folder = VERSIONS_FOLDER if is_main else f"{branch_root(str(branch))}/{VERSIONS_FOLDER}"
    _, objects = root.list_folder(folder)
    names = [parse_manifest_name(meta.path.rpartition("/")[2]) for meta in objects]
    return {name.version for name in names if name is not None}
