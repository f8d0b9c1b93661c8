"""What commits need to know of a version's reuse history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import UnsupportedFeatureError
from lance_core.table.index_metadata import REUSE_INDEX_NAME

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.table.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Reuse:
    """The deferred compactions of a version; ``dataset_versions`` are those before each."""

    dataset_versions: frozenset[int]

    def fold(self, coverage: BitMap) -> BitMap:
        """Lead the coverage of a segment through the history."""
        return coverage


def reuse_of(scheduler: RangeScheduler, manifest: Manifest) -> Reuse:
    """Read the reuse history of a version; one without has an empty one."""
    if any(entry.name == REUSE_INDEX_NAME for entry in manifest.index_section.indices):
        raise UnsupportedFeatureError(f"{manifest.path} has a reuse index")
    return Reuse(frozenset())
