"""Which tables and namespaces there are."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from lance_core.errors import StoreError, StoreThrottledError, StoreUnavailableError
from service.catalog.errors import NamespaceNotFoundError
from service.catalog.names import TABLE_SUFFIX, Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.io.store import ObjectStore
    from service.catalog.confinement import Confinement


_HIDDEN = "."


class Listing:
    """The folders below the root: ``NAME.lance`` is a table, any other one a namespace.

    Folders whose name begins with a dot are left out; they belong to tools. So are links that lead
    out of the served roots.

    Parameters
    ----------
    store
        Lists the folders.
    root
        Where the store begins, as the confinement knows it.
    confinement
        Says which links may be followed.
    """

    def __init__(self, store: ObjectStore, root: str, confinement: Confinement) -> None:
        self._store = store
        self._root = root
        self._confinement = confinement

    def tables(self, namespace: Namespace) -> list[str]:
        """Return the names of the tables directly in a namespace, in no order."""
        self.require(namespace)
        return [
            folder.removesuffix(TABLE_SUFFIX)
            for folder in self._folders(namespace)
            if _is_table(folder)
        ]

    def namespaces(self, namespace: Namespace) -> list[str]:
        """Return the names of the namespaces directly in a namespace, in no order."""
        self.require(namespace)
        return [folder for folder in self._folders(namespace) if not _is_table(folder)]

    def all_tables(self, below: Namespace) -> Iterator[tuple[Namespace, str]]:
        """Yield every table at any depth, with its namespace.

        Links are followed last and no folder is entered twice, so circles end, and what lies in a
        folder of several names is listed under one of them, its own if it has one.
        """
        self._confinement.check(self._place(below))
        waiting = deque([below])
        entered: set[str] = set()
        while waiting:
            namespace = waiting.popleft()
            real = self._confinement.real_place(self._place(namespace))
            if real in entered:
                continue
            entered.add(real)
            for folder in self._readable_folders(namespace):
                if _is_table(folder):
                    yield namespace, folder.removesuffix(TABLE_SUFFIX)
                    continue
                child = Namespace((*namespace.parts, folder))
                if self._confinement.is_link(self._place(child)):
                    waiting.append(child)
                else:
                    waiting.appendleft(child)

    def require(self, namespace: Namespace) -> None:
        """Raise unless the namespace exists; the root always does.

        Raises
        ------
        NamespaceNotFoundError
            There is none.
        PermissionDeniedError
            A symbolic link leads out of the served roots.
        """
        if namespace.parts == ():
            return
        self._confinement.check(self._place(namespace))
        *above, own = namespace.parts
        hides = any(_is_table(part) or part.startswith(_HIDDEN) for part in namespace.parts)
        if hides or own not in self._folders(Namespace(tuple(above))):
            raise NamespaceNotFoundError(f"namespace '{namespace}' not found")

    def _readable_folders(self, namespace: Namespace) -> list[str]:
        """Return the folders in a namespace; none if it may not be read, which hides no other."""
        try:
            return self._folders(namespace)
        except (StoreUnavailableError, StoreThrottledError):
            raise
        except StoreError:
            return []

    def _folders(self, namespace: Namespace) -> list[str]:
        folders, _ = self._store.list_folder(namespace.path)
        place = self._place(namespace)
        return [
            folder
            for folder in folders
            if not folder.startswith(_HIDDEN) and self._may_enter(f"{place}/{folder}")
        ]

    def _may_enter(self, place: str) -> bool:
        """Say whether a folder may be entered, given that the one above may be."""
        return not self._confinement.is_link(place) or self._confinement.admits(place)

    def _place(self, namespace: Namespace) -> str:
        return "/".join((self._root, *namespace.parts))


def _is_table(folder: str) -> bool:
    return folder.endswith(TABLE_SUFFIX) and folder != TABLE_SUFFIX
