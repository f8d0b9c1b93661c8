"""Histories that begin with a version of another one and refer to its files: branches, clones."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError, ObjectExistsError
from lance_core.io.deleting import delete_all
from lance_core.proto import table_pb2
from lance_core.table.dataset_stores import uri_below, uri_of_files
from lance_core.table.manifest_bytes import manifest_to_bytes
from lance_core.table.naming import (
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
    VERSIONS_FOLDER,
    NamingScheme,
    is_detached,
    manifest_path,
)
from lance_core.table.next_version import stamp
from lance_core.table.refs import (
    Branch,
    branch_root,
    check_new_branch,
    delete_branch,
    list_branches,
    list_tags,
    read_branch,
    write_branch,
)
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import TRANSACTIONS_FOLDER, Clone, Transaction, transaction_path
from lance_core.table.transaction_to_proto import transaction_to_bytes
from lance_core.table.version_hint import write_version_hint
from lance_core.table.versions import find_manifest
from lance_core.table.writer_flags import check_writable, set_flags

if TYPE_CHECKING:
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectStore
    from lance_core.table.snapshot import Snapshot

_OWN_FOLDERS = (
    VERSIONS_FOLDER,
    TRANSACTIONS_FOLDER,
    DATA_FOLDER,
    DELETIONS_FOLDER,
    INDICES_FOLDER,
)


def shallow_clone(
    source: Snapshot,
    target: RangeScheduler,
    *,
    source_branch: str | None = None,
    branch: str | None = None,
) -> Snapshot:
    """Make a history whose first version is one of another history; no data are copied.

    Parameters
    ----------
    source
        The version. Its files must stay where they are.
    target
        The root of the new history; its store is written to.
    source_branch
        Branch that the version is of, None for the main one.
    branch
        Name of the new history if it is a branch of the same dataset.

    Raises
    ------
    InvalidRequestError
        There is a dataset at the target already, or the version is a detached one.
    UnsupportedFeatureError
        The version has features that this release does not write.

    Notes
    -----
    Lance table format, section "Tags and branches"; verified against pylance 14.0.2. The number of
    the version stays, so that histories of branches do not meet.
    """
    if is_detached(source.version):
        raise InvalidRequestError("no history begins with a detached version; commit it first")
    check_writable(source.manifest.message, source.manifest.path)
    place = uri_of_files(source.scheduler.store.uri)
    operation = Clone(
        is_shallow=True,
        ref_name=source_branch,
        ref_version=source.version,
        ref_path=place,
        branch_name=branch,
    )
    transaction = Transaction(source.version, operation)
    message, indices = _referring(source, place, source_branch)
    message.ClearField("branch")
    if branch is not None:
        message.branch = branch
    message.transaction_file = transaction.file_name
    set_flags(message, indices)
    stamp(message, source.version)
    data = transaction_to_bytes(transaction)
    store, path = target.store, manifest_path(source.version, NamingScheme.V2)
    if any(store.list_folder(VERSIONS_FOLDER)):
        raise InvalidRequestError(f"there is a dataset at {store.uri} already; take another place")
    store.put(transaction_path(transaction.file_name), data)
    try:
        store.put_if_absent(path, manifest_to_bytes(message, indices, data))
    except ObjectExistsError:
        raise InvalidRequestError(f"somebody else has just made {store.uri}") from None
    write_version_hint(store, source.version)
    return open_snapshot(target, None, source.open_base)


def create_branch(
    root: ObjectStore, source: Snapshot, source_branch: str | None, name: str
) -> Snapshot:
    """Begin a branch with a version of a dataset.

    Parameters
    ----------
    root
        Store of the main branch.
    source
        The version.
    source_branch
        Branch that it is of, None for the main one.
    name
        Letters, digits, ``.``, ``-``, ``_``; ``/`` between parts.

    Raises
    ------
    InvalidRequestError
        That is no name of a branch, or there is one of the name.
    """
    check_new_branch(name)
    folder = branch_root(name)
    if name in {each.name for each in list_branches(root)}:
        raise InvalidRequestError(f'there is a branch "{name}" already')
    target = source.open_base(uri_below(root.uri, folder))
    made = shallow_clone(source, target, source_branch=source_branch, branch=name)
    lineage = () if source_branch is None else read_branch(root, source_branch).lineage
    meta = find_manifest(source.scheduler.store, source.version).meta
    branch = Branch(
        name=name,
        parent_branch=source_branch,
        parent_version=source.version,
        lineage=(*lineage, (source.version, uuid.uuid4().hex)),
        created_at=datetime.now(UTC),
        manifest_size=meta.size,
    )
    write_branch(root, branch)
    return made


def remove_branch(root: ObjectStore, name: str) -> None:
    """Delete a branch with all its versions and files.

    Raises
    ------
    VersionNotFoundError
        There is no such branch.
    InvalidRequestError
        Other branches began on it, or tags name versions of it.
    """
    read_branch(root, name)
    children = [each.name for each in list_branches(root) if each.parent_branch == name]
    tags = [each.name for each in list_tags(root) if each.branch == name]
    if len(children) + len(tags) > 0:
        raise InvalidRequestError(
            f'branch "{name}" is needed by branches {children} and tags {tags}; delete these first'
        )
    delete_branch(root, name)
    for folder in _OWN_FOLDERS:  # folders of branches below this one stay
        delete_all(root, [each.path for each in root.list_tree(f"{branch_root(name)}/{folder}")])


def _referring(
    source: Snapshot, place: str, source_branch: str | None
) -> tuple[table_pb2.Manifest, list[table_pb2.IndexMetadata]]:
    """Return manifest and index entries with all files where they are: at the source."""
    message = table_pb2.Manifest()
    message.CopyFrom(source.manifest.message)
    base = table_pb2.BasePath(id=_free_id(message), is_dataset_root=True, path=place)
    if source_branch is not None:
        base.name = source_branch
    message.base_paths.append(base)
    section = table_pb2.IndexSection()
    section.CopyFrom(source.manifest.index_section)
    for fragment in message.fragments:
        if fragment.HasField("deletion_file") and not fragment.deletion_file.HasField("base_id"):
            fragment.deletion_file.base_id = base.id
        for file in fragment.files:
            if not file.HasField("base_id"):
                file.base_id = base.id
    for entry in section.indices:
        if not entry.HasField("base_id"):
            entry.base_id = base.id
    return message, list(section.indices)


def _free_id(message: table_pb2.Manifest) -> int:
    return max((base.id for base in message.base_paths), default=-1) + 1
