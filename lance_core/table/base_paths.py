"""Files of a version that lie below the root of another dataset: shallow clones and branches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.proto import table_pb2

    OpenBase = Callable[[str], RangeScheduler]
    """Returns the means to read below a base path, or raises if it must not be read."""


@dataclass(frozen=True, slots=True)
class BasePath:
    """A place outside the dataset that holds some of its files.

    ``is_dataset_root`` says whether files lie in the usual folders below it, or directly in it.
    """

    id: int
    name: str | None
    is_dataset_root: bool
    path: str


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a file or folder lies: its store, and its path there."""

    scheduler: RangeScheduler
    path: str

    @property
    def key(self) -> tuple[str, str]:
        """Name the file in cache keys."""
        return self.scheduler.store.key, self.path

    def below(self, name: str) -> Place:
        """Return the place of a file in this folder."""
        return Place(self.scheduler, name if self.path == "" else f"{self.path}/{name}")


def base_paths_of(message: table_pb2.Manifest, path: str) -> Mapping[int, BasePath]:
    """Return the base paths of the manifest at ``path`` by their ids, of which 0 is one.

    Raises
    ------
    CorruptFileError
        Two have the same id.
    """
    found = {
        each.id: BasePath(
            each.id, each.name if each.HasField("name") else None, each.is_dataset_root, each.path
        )
        for each in message.base_paths
    }
    if len(found) != len(message.base_paths):
        raise CorruptFileError(path, "two base paths have the same id")
    return found


def refuse_base(path: str) -> RangeScheduler:
    """Stand in where whoever opens a snapshot gives no means to read other places."""
    raise UnsupportedFeatureError(f"files below {path} are needed, which was not opened for them")


def check_absolute(base: BasePath, manifest_path: str) -> None:
    """Refuse a base path that means another place in every working directory.

    Raises
    ------
    UnsupportedFeatureError
        It is neither a URI nor an absolute path.
    """
    if not base.path.startswith("/") and "://" not in base.path:
        raise UnsupportedFeatureError(
            f'{manifest_path}: base path {base.id} is "{base.path}"; only URIs and absolute paths'
            " are supported"
        )
