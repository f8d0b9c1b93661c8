"""Keeps local datasets inside the served roots, also through symbolic links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from service.catalog.errors import PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE_SCHEME = "file://"


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
        self._roots = [place.resolve() for place in places if place is not None]

    def check(self, uri: str) -> None:
        """Raise ``PermissionDeniedError`` when a local place leads out of the roots."""
        place = local_path(uri)
        if place is None:
            return
        real = place.resolve()
        if not any(real.is_relative_to(root) for root in self._roots):
            raise PermissionDeniedError(
                "the table lies outside the served roots (a symbolic link leads there)"
            )
