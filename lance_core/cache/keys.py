"""Names of what the cache keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable


class CacheKey(NamedTuple):
    """Names one value: what it is, the store that its dataset lies in, and which of these it is.

    ``name`` must tell apart all that may differ, so that no value can be stale: files with random
    names by their paths, everything else by the incarnation of its version.
    """

    what: str
    store: str
    name: Hashable
