"""Which tables and namespaces there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.catalog.errors import NamespaceNotFoundError
from service.catalog.names import TABLE_SUFFIX, Namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lance_core.io.store import ObjectStore


class Listing:
    """The folders below the root: ``NAME.lance`` is a table, any other one a namespace.

    Folders whose name begins with a dot are left out; they belong to tools.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

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
        """Yield every table at any depth, with its namespace."""
        waiting = [below]
        while waiting:
            namespace = waiting.pop()
            for folder in self._folders(namespace):
                if _is_table(folder):
                    yield namespace, folder.removesuffix(TABLE_SUFFIX)
                else:
                    waiting.append(Namespace((*namespace.parts, folder)))

    def require(self, namespace: Namespace) -> None:
        """Raise ``NamespaceNotFoundError`` unless the namespace exists; the root always does."""
        if namespace.parts == ():
            return
        *above, own = namespace.parts
        if _is_table(own) or own not in self._folders(Namespace(tuple(above))):
            raise NamespaceNotFoundError(f"namespace '{namespace}' not found")

    def _folders(self, namespace: Namespace) -> list[str]:
        folders, _ = self._store.list_folder(namespace.path)
        return [folder for folder in folders if not folder.startswith(".")]


def _is_table(folder: str) -> bool:
    return folder.endswith(TABLE_SUFFIX) and folder != TABLE_SUFFIX
