"""Names of tables and namespaces, and where they lie below the root."""

from __future__ import annotations

import json
from dataclasses import dataclass

from service.catalog.errors import PermissionDeniedError

TABLE_SUFFIX = ".lance"

_FORBIDDEN = frozenset("/\\\0")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A folder below the root; no parts = the root itself."""

    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part in self.parts:
            _check(part)

    @property
    def path(self) -> str:
        """Folder relative to the root, ``a/b``."""
        return "/".join(self.parts)

    def __str__(self) -> str:
        return "$".join(self.parts)


@dataclass(frozen=True, slots=True)
class TableName:
    """A table: the dataset ``<name>.lance`` in a namespace."""

    namespace: Namespace
    name: str

    def __post_init__(self) -> None:
        _check(self.name)

    @property
    def path(self) -> str:
        """Dataset folder relative to the root, ``a/b/t.lance``."""
        return "/".join((*self.namespace.parts, self.name + TABLE_SUFFIX))

    def __str__(self) -> str:
        return "$".join((*self.namespace.parts, self.name))


def _check(part: str) -> None:
    """Refuse names that could lead out of the root, however the store reads them."""
    if part in {".", ".."} or not _FORBIDDEN.isdisjoint(part):
        raise PermissionDeniedError(
            f"the name {json.dumps(part)} is not allowed: names hold no slash and no backslash, and"
            ' are not "." or ".."'
        )
