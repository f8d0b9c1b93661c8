"""The hint that tells other readers where to begin looking for the newest version."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lance_core.errors import StoreError

if TYPE_CHECKING:
    from lance_core.io.store import ObjectStore

_PATH = "_versions/latest_version_hint.json"


def write_version_hint(store: ObjectStore, version: int) -> None:
    """Write the hint, if the store lets us: the version is committed without it.

    Notes
    -----
    Lance table format, section "Finding the latest version": compact JSON, no newline. Two writers
    may leave the older number; no reader relies on it.
    """
    with contextlib.suppress(StoreError):
        store.put(_PATH, b'{"version":%d}' % version)
