"""Where the versions of a dataset lie: below its root, or in the folder of a branch."""

from __future__ import annotations

from contextlib import contextmanager
from os import fspath
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.file.arguments import checked_location
from lance_core.table.dataset_stores import uri_above, uri_below
from lance_core.table.refs import MAIN_BRANCH, branch_root, read_branch, read_tag
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectStore
    from lance_core.table.base_paths import OpenBase
    from lance_core.table.snapshot import Snapshot


def as_uri(uri: str | PathLike[str]) -> str:
    """Return what a user gives as a place, as text.

    Raises
    ------
    InvalidRequestError
        It is neither text nor a path of text.
    """
    try:
        place: str | bytes = fspath(uri)
    except TypeError:
        place = b""
    if isinstance(place, bytes):
        raise InvalidRequestError(f"uri is {uri!r}; give a path or a URI such as s3://...")
    return checked_location(place)


def branch_of(snapshot: Snapshot) -> str | None:
    """Return the branch that a version was opened on, None for the main one.

    A clone of a branch states its name too, but does not lie in its folder.
    """
    message = snapshot.manifest.message
    if not message.HasField("branch") or message.branch == MAIN_BRANCH:
        return None
    root = uri_above(snapshot.scheduler.store.uri, branch_root(message.branch))
    return None if root is None else message.branch


def root_of(snapshot: Snapshot) -> RangeScheduler:
    """Return the means to read from the root of the main branch, where tags and branches are."""
    branch = branch_of(snapshot)
    root = None if branch is None else uri_above(snapshot.scheduler.store.uri, branch_root(branch))
    return snapshot.scheduler if root is None else snapshot.open_base(root)


def open_version(
    root: RangeScheduler,
    version: int | str | None,
    branch: str | None,
    open_branch: OpenBase,
    open_base: OpenBase,
) -> Snapshot:
    """Open a version by number or name.

    Parameters
    ----------
    root
        Reads from the root of the main branch.
    version
        A number, or a tag, which names its branch itself; None = the latest.
    branch
        None = the main one, or that of the tag.
    open_branch
        Gives the means to read from the folder of a branch.
    open_base
        Gives the means to read files of other datasets.

    Raises
    ------
    VersionNotFoundError
        There is no such version, tag or branch.
    InvalidRequestError
        That is no possible name, or the tag is one of another branch.
    CorruptFileError, UnsupportedFeatureError
        As `open_snapshot`; places are below the root of the main branch.
    """
    if isinstance(version, str):
        branch, version = _resolve(root.store, version, branch)
    if not isinstance(branch, str | None):
        raise InvalidRequestError(f"branch is {branch!r}; give a name")
    if branch is None or branch == MAIN_BRANCH:
        return open_snapshot(root, version, open_base)
    read_branch(root.store, branch)
    place = open_branch(uri_below(root.store.uri, branch_root(branch)))
    with told_below(branch):
        return open_snapshot(place, version, open_base)


@contextmanager
def told_below(branch: str | None) -> Iterator[None]:
    """Name files of a branch that contradict their format as they lie below the main root."""
    try:
        yield
    except CorruptFileError as error:
        if branch is None or branch == MAIN_BRANCH:
            raise
        path = f"{branch_root(branch)}/{error.path}"
        raise CorruptFileError(path, error.reason, offset=error.offset) from error


def _resolve(store: ObjectStore, tag: str, branch: str | None) -> tuple[str | None, int]:
    """Return branch and version of a tag."""
    found = read_tag(store, tag)
    if branch is not None and branch != (MAIN_BRANCH if found.branch is None else found.branch):
        raise InvalidRequestError(f'tag "{tag}" names a version of another branch than "{branch}"')
    return found.branch, found.version
