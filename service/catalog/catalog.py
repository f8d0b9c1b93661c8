"""What the routes ask: which databases there are, and which of them a request is about."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from service.catalog.database import Database
from service.catalog.datasets import Slots
from service.catalog.errors import NamespaceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from service.catalog.datasets import OpenAnyDataset
    from service.settings import Settings


class Catalog:
    """All databases, by name; the only one of a single root has none.

    Parameters
    ----------
    settings
        Which databases there are.
    open_dataset
        Opens datasets anywhere.
    """

    def __init__(self, settings: Settings, open_dataset: OpenAnyDataset) -> None:
        self._slots = Slots(settings.max_open_datasets)
        self.databases: Mapping[str | None, Database] = {
            name: Database(name, place, settings, open_dataset, self._slots)
            for name, place in settings.places().items()
        }

    def find(
        self, named: str | None, parts: Sequence[str], check: Callable[[str], None]
    ) -> tuple[Database | None, tuple[str, ...]]:
        """Return the database of a request, and what of the identifier is left inside it.

        With a single root there is nothing to choose, whatever a client calls it. Else the first
        part of the identifier names the database, unless the client does; None where neither does.

        Parameters
        ----------
        named
            What the client calls the database.
        parts
            The identifier.
        check
            Called with the name before it is looked up, and raises for callers to whom it must not
            be told whether there is such a database.

        Raises
        ------
        NamespaceNotFoundError
            There is no such database.
        """
        inside = tuple(parts)
        if None in self.databases:
            return self.databases[None], inside
        if named is None and inside == ():
            return None, ()
        name, inside = (inside[0], inside[1:]) if named is None else (named, inside)
        check(name)
        found = self.databases.get(name)
        if found is None:
            raise NamespaceNotFoundError(f"there is no database '{name}'")
        return found, inside

    def release_unused(self) -> None:
        """Let go of old versions that nobody uses, with what the cache holds for them alone."""
        self._slots.release_unused(time.monotonic())

    @property
    def num_open(self) -> int:
        """Number of versions of datasets that are kept open."""
        return len(self._slots.held())

    def names(self) -> list[str]:
        """Return the names of the databases, in no order."""
        return [name for name in self.databases if name is not None]
