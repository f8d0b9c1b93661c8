"""Keeps local datasets inside the served roots, also through symbolic links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from service.catalog.errors import PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE_SCHEME = "file://"
_ESCAPING = frozenset("%?#\\")


def absolute_root(root: str) -> str:
    """Return a root so that it means the same from every working directory."""
    local = local_path(root)
    return root.rstrip("/") if local is None else str(local)


def local_path(uri: str) -> Path | None:
    """Return the absolute local path that a URI names, None for a remote store."""
    if uri.startswith(_FILE_SCHEME):
        return Path(uri.removeprefix(_FILE_SCHEME)).absolute()
    return None if "://" in uri else Path(uri).absolute()


class Confinement:
    """Which local places may be read: the root itself and the further roots allowed."""

    def __init__(self, root: str, allowed_roots: Sequence[str]) -> None:
        places = [local_path(uri) for uri in (root, *allowed_roots)]
        self._roots = [os.path.realpath(place) for place in places if place is not None]
        self._remote = [
            f"{uri.rstrip('/')}/" for uri in (root, *allowed_roots) if local_path(uri) is None
        ]

    def check(self, uri: str) -> None:
        """Raise ``PermissionDeniedError`` when a local place leads out of the roots."""
        if not self.admits(uri):
            raise PermissionDeniedError(
                "the name leads outside the served roots (through a symbolic link)"
            )

    def check_base(self, uri: str) -> None:
        """Raise ``PermissionDeniedError`` when a place that a manifest names is not served.

        A manifest can name any place, remote ones too, so these must be below a remote root.
        """
        if not self._admits_base(uri):
            raise PermissionDeniedError(
                f'the table has files below "{uri}", which is outside the served roots: add it to'
                " allowed_roots"
            )

    def _admits_base(self, uri: str) -> bool:
        if "://" not in uri:
            return self.admits(uri)
        # stores read escapes, dots and hosts in their own ways, and no writer puts them here
        if not _ESCAPING.isdisjoint(uri) or not {".", ".."}.isdisjoint(uri.split("/")):
            return False
        if uri.startswith(_FILE_SCHEME):
            return uri.startswith(f"{_FILE_SCHEME}/") and self.admits(uri)
        return any(f"{uri}/".startswith(root) for root in self._remote)

    def admits(self, uri: str) -> bool:
        """Say whether a place lies inside the roots; remote stores have nothing that leads out."""
        place = local_path(uri)
        if place is None:
            return True
        # Path.resolve would fail for links that lead to themselves.
        real = Path(os.path.realpath(place))
        return any(real.is_relative_to(root) for root in self._roots)

    def is_link(self, uri: str) -> bool:
        """Say whether the last part of a place is a symbolic link."""
        place = local_path(uri)
        return place is not None and place.is_symlink()

    def real_place(self, uri: str) -> str:
        """Return the one name of a place that has several."""
        place = local_path(uri)
        return uri if place is None else os.path.realpath(place)
