"""Paths inside a store: relative, with ``/`` between parts, never leaving the root.

Paths come from manifests, which are untrusted: the stores check them once more, last of all.
"""

from __future__ import annotations

from lance_core.errors import StoreError

_FORBIDDEN_PARTS = frozenset(("", ".", ".."))


def check_path(path: str) -> str:
    """Return ``path``, or raise ``StoreError`` if it is not the plain name of an object.

    Examples
    --------
    >>> check_path("data/a.lance")
    'data/a.lance'
    """
    if "\0" in path or not _FORBIDDEN_PARTS.isdisjoint(path.split("/")):
        raise StoreError(
            f'"{path}" is no path inside a store: it must be relative, '
            'without empty parts, "." or ".."'
        )
    return path


def check_folder(prefix: str) -> str:
    """Return ``prefix`` without its trailing slash; the root is the empty string.

    Examples
    --------
    >>> check_folder("_versions/"), check_folder("")
    ('_versions', '')
    """
    return prefix if prefix == "" else check_path(prefix.removesuffix("/"))
