"""One database: the tables below one root, reached with the credentials of that root."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lance_core.errors import (
    BranchNotFoundError,
    DatasetNotFoundError,
    LanceError,
    TagNotFoundError,
    VersionNotFoundError,
)
from lance_core.io.open import open_store
from lance_core.table.dataset_stores import uri_below
from lance_core.table.refs import MAIN_BRANCH, branch_root
from service.catalog.confinement import Confinement, absolute_root
from service.catalog.datasets import OpenDatasets
from service.catalog.freshness import ANY_AGE
from service.catalog.listing import Listing
from service.catalog.missing_objects import is_about_missing_object
from service.catalog.pins import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lance_core.dataset import Dataset
    from service.catalog.datasets import OpenAnyDataset, Slots
    from service.catalog.freshness import Freshness
    from service.catalog.names import TableName
    from service.catalog.pins import Pin
    from service.settings import Place, Settings

T = TypeVar("T")

_MAX_VERSION = 2**64 - 1


class Database:
    """The datasets below one root.

    Parameters
    ----------
    name
        What callers call it; None = the only one.
    place
        Its root, and the options of its store.
    settings
        What holds for all databases.
    open_dataset
        Opens datasets anywhere.
    slots
        Where opened datasets are kept.
    """

    def __init__(
        self,
        name: str | None,
        place: Place,
        settings: Settings,
        open_dataset: OpenAnyDataset,
        slots: Slots,
    ) -> None:
        self.name = name
        self._root = absolute_root(place.root)
        self._confinement = Confinement(place.root, settings.allowed_roots)
        store = open_store(place.root, place.storage_options)
        self.listing = Listing(store, self._root, self._confinement)
        self._datasets = OpenDatasets(
            partial(
                open_dataset,
                storage_options=place.storage_options,
                check_base=self._confinement.check_base,
            ),
            slots,
            max_age_s=settings.read_consistency_interval,
            database=name,
        )

    def location(self, table: TableName) -> str:
        """Return the URI under which the table's dataset can be opened directly."""
        return f"{self._root}/{table.path}"

    def resident(self, table: TableName, pin: Pin, demand: Freshness) -> Dataset | None:
        """Return the dataset if it is open and new enough; never waits for the store."""
        return self._datasets.resident(self.location(table), pin, demand)

    def open(self, table: TableName, pin: Pin, demand: Freshness) -> Dataset:
        """Return the dataset of a table; may wait for the store.

        Raises
        ------
        DatasetNotFoundError, VersionNotFoundError
            There is none; the latter also of a tag or a branch.
        PermissionDeniedError
            A symbolic link leads out of the served roots.
        """
        location = self.location(table)
        with _errors_naming(table):
            if isinstance(pin.version, int) and not 0 < pin.version <= _MAX_VERSION:
                raise VersionNotFoundError(f"there is no version {pin.version}")
            self._confinement.check(location)
            if pin.branch is not None and pin.branch != MAIN_BRANCH:
                self._confinement.check(uri_below(location, branch_root(pin.branch)))
            try:
                dataset = self._datasets.open(location, pin, demand)
            except (TagNotFoundError, BranchNotFoundError):
                self._datasets.open(location, LATEST, ANY_AGE)  # is there a table at all?
                raise
            if isinstance(pin.version, str):  # the branch is known only now
                self._confinement.check(dataset.uri)
            return dataset

    def run(self, table: TableName, pin: Pin, demand: Freshness, work: Callable[[Dataset], T]) -> T:
        """Return what ``work`` makes of the dataset of a table; errors as ``open``, and its own.

        When a file turns out to be missing, the version that was held may no longer be the truth:
        the store is asked again, and if it shows another one, ``work`` is called once more.
        """
        dataset = self.open(table, pin, demand)
        with _errors_naming(table):
            try:
                return work(dataset)
            except LanceError as error:
                if not is_about_missing_object(error):
                    raise
                present = self._datasets.reopen(self.location(table), pin)
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
        raise type(error)(f"table '{table}': {error}") from error
