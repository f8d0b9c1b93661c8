"""What the routes ask: which tables there are, and the dataset behind a name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import DatasetNotFoundError, LanceError, VersionNotFoundError
from service.catalog.confinement import Confinement, absolute_root
from service.catalog.datasets import OpenDataset, OpenDatasets
from service.catalog.listing import Listing
from service.catalog.missing_objects import is_about_missing_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lance_core.dataset import Dataset
    from lance_core.io.store import ObjectStore
    from service.catalog.freshness import Freshness
    from service.catalog.names import TableName
    from service.settings import Settings

T = TypeVar("T")

_MAX_VERSION = 2**64 - 1


class Catalog:
    """The datasets below one root."""

    def __init__(self, settings: Settings, store: ObjectStore, open_dataset: OpenDataset) -> None:
        self._root = absolute_root(settings.root)
        self._confinement = Confinement(settings.root, settings.allowed_roots)
        self.listing = Listing(store, self._root, self._confinement)
        self._datasets = OpenDatasets(
            open_dataset,
            max_open=settings.max_open_datasets,
            max_age_s=settings.read_consistency_interval,
        )

    def location(self, table: TableName) -> str:
        """Return the URI under which the table's dataset can be opened directly."""
        return f"{self._root}/{table.path}"

    def resident(self, table: TableName, version: int | None, demand: Freshness) -> Dataset | None:
        """Return the dataset if it is open and new enough; never waits for the store."""
        return self._datasets.resident(self.location(table), version, demand)

    def open(self, table: TableName, version: int | None, demand: Freshness) -> Dataset:
        """Return the dataset of a table; may wait for the store.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            There is none.
        PermissionDeniedError
            A symbolic link leads out of the served roots.
        """
        location = self.location(table)
        with _errors_naming(table):
            if version is not None and not 0 < version <= _MAX_VERSION:
                raise VersionNotFoundError(f"there is no version {version}")
            self._confinement.check(location)
            return self._datasets.open(location, version, demand)

    def run(
        self,
        table: TableName,
        version: int | None,
        demand: Freshness,
        work: Callable[[Dataset], T],
    ) -> T:
        """Return what ``work`` makes of the dataset of a table; errors as ``open``, and its own.

        When a file turns out to be missing, the version that was held may no longer be the truth:
        the store is asked again, and if it shows another one, ``work`` is called once more.
        """
        dataset = self.open(table, version, demand)
        with _errors_naming(table):
            try:
                return work(dataset)
            except LanceError as error:
                if not is_about_missing_object(error):
                    raise
                present = self._datasets.reopen(self.location(table), version)
                if present.snapshot.incarnation == dataset.snapshot.incarnation:
                    raise
            return work(present)


@contextmanager
def _errors_naming(table: TableName) -> Iterator[None]:
    """Make errors about what is not there name the table, not the place where it lies."""
    try:
        yield
    except DatasetNotFoundError as error:
        raise DatasetNotFoundError(f"table '{table}' not found") from error
    except VersionNotFoundError as error:
        raise VersionNotFoundError(f"table '{table}': {error}") from error
