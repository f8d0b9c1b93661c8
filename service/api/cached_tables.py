"""What the cache holds of each table, told to those who may read the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.catalog.confinement import absolute_root
from service.catalog.errors import PermissionDeniedError
from service.catalog.names import TABLE_SUFFIX, Namespace, TableName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lance_core.cache.figures import StoreFigures
    from service.api.callers import Caller
    from service.settings import Settings

_OPTIONS = "#"
"""Stands in keys of stores before what tells options apart."""
_COUNTERS = ("used_bytes", "entries", "hits", "misses", "evictions")


def cached_tables(
    figures: Mapping[str, StoreFigures], settings: Settings, caller: Caller
) -> list[dict[str, object]]:
    """Return the figures of each table that the caller may read, the largest first.

    Parameters
    ----------
    figures
        By key of the store, as of ``ByteCache.figures``.
    settings
        Where the databases lie.
    caller
        Who asks. What lies outside the databases, as the files of shallow clones may, is told to
        those who may read everything, as the table null.
    """
    roots = {name: absolute_root(place.root) for name, place in settings.places().items()}
    sums: dict[str | None, dict[str, int]] = {}
    for key, held in figures.items():
        for name in _shown_as(key, roots, caller):
            added = sums.setdefault(name, dict.fromkeys(_COUNTERS, 0))
            for counter in _COUNTERS:
                added[counter] += getattr(held, counter)
    largest_first = sorted(sums.items(), key=lambda item: -item[1]["used_bytes"])
    return [{"table": name, **counters} for name, counters in largest_first]


def _shown_as(key: str, roots: Mapping[str | None, str], caller: Caller) -> Iterator[str | None]:
    """Yield the identifier of the table that a store belongs to, nothing if it is not shown."""
    for database, root in roots.items():
        table = table_below(root, key)
        if table is not None:
            if caller.may_read(database, table):
                yield str(table) if database is None else f"{database}${table}"
            return
    if caller.databases is None and caller.tables is None:
        yield None


def table_below(root: str, key: str) -> TableName | None:
    """Return the table whose files a store holds, None if it lies in none below a root.

    Examples
    --------
    >>> str(table_below("s3://bucket/x", "s3://bucket/x/a/t.lance#0a1b2c3d"))
    'a$t'
    >>> str(table_below("/data", "/data/t.lance/tree/dev"))
    't'
    >>> table_below("/data", "/database/t.lance") is None
    True
    """
    inside = key.partition(_OPTIONS)[0].removeprefix(f"{root}/")
    if inside == key.partition(_OPTIONS)[0]:
        return None
    parts = inside.split("/")
    for at, part in enumerate(parts):
        if part.endswith(TABLE_SUFFIX):
            try:
                return TableName(Namespace(tuple(parts[:at])), part.removesuffix(TABLE_SUFFIX))
            except PermissionDeniedError:
                return None
    return None
