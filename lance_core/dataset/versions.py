"""Versions of a dataset by number and by name, and what is said about all of its rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lance_core.dataset.places import as_uri, branch_of, open_version, root_of, told_below
from lance_core.dataset.reads import DatasetReads
from lance_core.errors import InvalidRequestError
from lance_core.file.arguments import checked_text
from lance_core.operations.arguments import checked_entries
from lance_core.operations.clone import create_branch, remove_branch, shallow_clone
from lance_core.operations.commit_planned import commit_planned
from lance_core.table.refs import (
    Branch,
    Tag,
    delete_tag,
    list_branches,
    list_tags,
    read_tag,
    write_tag,
)
from lance_core.table.snapshot import open_snapshot, page_of_versions
from lance_core.table.transaction import MapUpdate, Restore, UpdateConfig
from lance_core.table.versions import find_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import Self

    from lance_core.table.snapshot import VersionInfo
    from lance_core.table.transaction import Operation

    Entries = Mapping[str, str | None]
    """Texts by key; None deletes a key."""


class DatasetVersions(DatasetReads):
    """What can be done with versions as a whole."""

    def checkout(self, version: int | str | None = None, *, branch: str | None = None) -> Self:
        """Open another version of the same dataset.

        Parameters
        ----------
        version
            A number, or a tag, which names its branch itself; None = the latest.
        branch
            Branch whose versions are meant; None = that of this version.

        Raises
        ------
        VersionNotFoundError
            There is no such version, tag or branch.
        InvalidRequestError
            The version is no number, the tag or branch no possible name, or the tag is one of
            another branch.
        """
        here, open_base = self.snapshot.scheduler, self.snapshot.open_base
        if branch is None and not isinstance(version, str):
            with told_below(branch_of(self.snapshot)):
                return self._at(open_snapshot(here, version, open_base))
        root = root_of(self.snapshot)
        return self._at(open_version(root, version, branch, open_base, open_base))

    def restore(self, version: int | None = None) -> Self:
        """Make an old version the newest one again; those between stay readable.

        Parameters
        ----------
        version
            Its number; None = this one.

        Raises
        ------
        VersionNotFoundError
            There is no such version.
        """
        number = self.version if version is None else version
        find_manifest(self.snapshot.scheduler.store, number)
        return self._committed(Restore(number))

    def tags(self) -> list[Tag]:
        """Return all tags, by name."""
        return list_tags(root_of(self.snapshot).store)

    def tag(self, name: str) -> Tag:
        """Return one tag.

        Raises
        ------
        TagNotFoundError
            There is none of the name.
        InvalidRequestError
            That is no name of a tag.
        """
        return read_tag(root_of(self.snapshot).store, name)

    @property
    def branch(self) -> str | None:
        """Branch that this version was opened on, None for the main one."""
        return branch_of(self.snapshot)

    def version_page(
        self, *, after: int | None = None, limit: int | None = None, descending: bool = False
    ) -> tuple[list[VersionInfo], bool]:
        """Describe some versions of the branch; reads their manifests and no others.

        Parameters
        ----------
        after
            Number of the version that comes before the first one; None = begin at the end.
        limit
            Most versions; None = all.
        descending
            Newest first.

        Returns
        -------
        tuple[list[VersionInfo], bool]
            The versions, and whether there are more after them.
        """
        with told_below(self.branch):
            return page_of_versions(self.snapshot.scheduler, after, limit, descending=descending)

    def create_tag(self, name: str, version: int | None = None) -> Tag:
        """Name a version of this branch, which cleanup keeps then.

        Parameters
        ----------
        name
            Letters, digits, ``.``, ``-`` and ``_``.
        version
            Its number; None = this one.

        Raises
        ------
        InvalidRequestError
            That is no name of a tag, or there is one of the name.
        VersionNotFoundError
            There is no such version.
        """
        now = datetime.now(UTC)
        tag = self._tag(name, version, now, now)
        write_tag(root_of(self.snapshot).store, tag)
        return tag

    def update_tag(self, name: str, version: int | None = None) -> Tag:
        """Let a tag name another version of this branch; None = this one.

        Raises
        ------
        VersionNotFoundError
            There is no such tag or version.
        """
        store = root_of(self.snapshot).store
        tag = self._tag(name, version, read_tag(store, name).created_at, datetime.now(UTC))
        write_tag(store, tag, replace=True)
        return tag

    def delete_tag(self, name: str) -> None:
        """Delete a tag, and nothing of its version.

        Raises
        ------
        VersionNotFoundError
            There is no such tag.
        """
        delete_tag(root_of(self.snapshot).store, name)

    def branches(self) -> list[Branch]:
        """Return all branches but the main one, by name."""
        return list_branches(root_of(self.snapshot).store)

    def create_branch(self, name: str) -> Self:
        """Begin a branch with this version, and return the dataset on it.

        Files of this version are not copied; what is written on the branch lies in its own folder.

        Parameters
        ----------
        name
            Letters, digits, ``.``, ``-`` and ``_``, in parts joined by ``/``.

        Raises
        ------
        InvalidRequestError
            That is no name of a branch, or there is one of the name.
        """
        snapshot = self.snapshot
        root = root_of(snapshot).store
        return self._at(create_branch(root, snapshot, branch_of(snapshot), name))

    def delete_branch(self, name: str) -> None:
        """Delete a branch with all its versions and files.

        Raises
        ------
        VersionNotFoundError
            There is no such branch.
        InvalidRequestError
            Other branches began on it, tags name versions of it, or this version is one of it.
        """
        if name == branch_of(self.snapshot):
            raise InvalidRequestError(f'this is branch "{name}"; open another one to delete it')
        remove_branch(root_of(self.snapshot).store, name)

    def shallow_clone(self, uri: str | PathLike[str]) -> Self:
        """Make a dataset elsewhere that begins with this version and refers to its files.

        Parameters
        ----------
        uri
            A local folder, or the URI of a place in an object store, opened as this dataset was.

        Raises
        ------
        InvalidRequestError
            There is a dataset already.
        """
        snapshot = self.snapshot
        target = snapshot.open_base(as_uri(uri))
        return self._at(shallow_clone(snapshot, target, source_branch=branch_of(snapshot)))

    @property
    def config(self) -> dict[str, str]:
        """How the table is kept: keys that writers look at, such as ``lance.auto_cleanup.*``."""
        return dict(self.snapshot.manifest.config)

    @property
    def metadata(self) -> dict[str, str]:
        """What users say about the table."""
        return dict(self.snapshot.manifest.message.table_metadata)

    def update_config(self, entries: Entries, *, replace: bool = False) -> Self:
        """Change the configuration; None deletes a key.

        Parameters
        ----------
        entries
            Texts by key.
        replace
            Whether these are all the keys from now on.
        """
        return self._committed(UpdateConfig(config=_map_update(entries, replace=replace)))

    def update_metadata(self, entries: Entries, *, replace: bool = False) -> Self:
        """Change what is said about the table; as `update_config`."""
        return self._committed(UpdateConfig(table_metadata=_map_update(entries, replace=replace)))

    def update_schema_metadata(self, entries: Entries, *, replace: bool = False) -> Self:
        """Change the metadata of the Arrow schema; as `update_config`."""
        return self._committed(UpdateConfig(schema_metadata=_map_update(entries, replace=replace)))

    def update_field_metadata(self, path: str, entries: Entries, *, replace: bool = False) -> Self:
        """Change the metadata of a column or a part of one; as `update_config`.

        Raises
        ------
        UnknownColumnError
            There is no such column.
        """
        field = self.snapshot.schema.field(checked_text("path", path))
        update = _map_update(entries, replace=replace)
        return self._committed(UpdateConfig(field_metadata={field.id: update}))

    def _committed(self, operation: Operation) -> Self:
        return self._at(commit_planned(self.snapshot, lambda _: operation))

    def _tag(
        self, name: str, version: int | None, created_at: datetime | None, updated_at: datetime
    ) -> Tag:
        number = self.version if version is None else version
        meta = find_manifest(self.snapshot.scheduler.store, number).meta
        branch = branch_of(self.snapshot)
        return Tag(name, number, branch, meta.size, created_at, updated_at)


def _map_update(entries: Entries, *, replace: bool) -> MapUpdate:
    return MapUpdate(checked_entries("entries", entries), replace)
