"""What a dataset holds at one version: rows, fragments, deletions, indices and their coverage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyroaring import BitMap

from lance_core.dataset.places import branch_of
from lance_core.index.coverage import effective_coverage
from lance_core.schema.arrow import to_arrow_schema
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.reuse_trim import growth

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lance_core.dataset.face import Dataset
    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField
    from lance_core.table.fragment import Fragment
    from lance_core.table.reuse_history import ReuseHistory
    from lance_core.table.reuse_trim import ReuseGrowth
    from lance_core.table.snapshot import Snapshot

_TEXT_OF_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class VersionReport:
    """One version of the history; ``tags`` are those that name it."""

    version: int
    timestamp: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FragmentReport:
    """One fragment: ``num_bytes`` are those of its data files, None where a writer left it out."""

    id: int
    physical_rows: int
    num_deleted_rows: int
    num_data_files: int
    num_bytes: int | None


@dataclass(frozen=True, slots=True)
class IndexReport:
    """One index with all its segments.

    ``covered`` are the live fragments that its segments answer for, each once, ascending.
    """

    name: str
    type_name: str
    columns: tuple[str, ...]
    num_segments: int
    num_bytes: int
    covered: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """Everything; ``schema`` gives the type of each column as Arrow writes it.

    ``reuse`` is None where no compaction was deferred.
    """

    uri: str
    version: int
    branch: str | None
    num_rows: int
    schema: Mapping[str, str]
    data_storage_versions: tuple[str, ...]
    has_stable_row_ids: bool
    config: Mapping[str, str]
    branches: tuple[str, ...]
    versions: tuple[VersionReport, ...]
    fragments: tuple[FragmentReport, ...]
    indices: tuple[IndexReport, ...]
    reuse: ReuseGrowth | None

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values, ready for JSON."""
        return asdict(self)


def inspect_dataset(dataset: Dataset) -> DatasetReport:
    """Describe a dataset at its version; reads all manifests, no rows and no index.

    Raises
    ------
    CorruptFileError
        A manifest or a deletion file contradicts the format.
    UnsupportedFeatureError
        A version needs a feature that this release lacks.
    """
    snapshot = dataset.snapshot
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    data_files = [file for fragment in snapshot.fragments for file in fragment.data_files]
    versions = {f"{file.major_version}.{file.minor_version}" for file in data_files}
    return DatasetReport(
        uri=dataset.uri,
        version=dataset.version,
        branch=branch_of(snapshot),
        num_rows=dataset.count_rows(),
        schema={field.name: str(field.type) for field in to_arrow_schema(snapshot.schema)},
        data_storage_versions=tuple(sorted(versions)),
        has_stable_row_ids=snapshot.has_stable_row_ids,
        config=dataset.config,
        branches=tuple(branch.name for branch in dataset.branches()),
        versions=_versions(dataset),
        fragments=tuple(_fragment(fragment) for fragment in snapshot.fragments),
        indices=_indices(snapshot, history),
        reuse=growth(history, snapshot.indices) if len(history.versions) > 0 else None,
    )


def _versions(dataset: Dataset) -> tuple[VersionReport, ...]:
    here = branch_of(dataset.snapshot)
    tags = [tag for tag in dataset.tags() if tag.branch == here]
    return tuple(
        VersionReport(
            each.version,
            each.timestamp.isoformat(),
            tuple(tag.name for tag in tags if tag.version == each.version),
        )
        for each in dataset.versions()
    )


def _fragment(fragment: Fragment) -> FragmentReport:
    sizes = [file.size for file in fragment.data_files if file.size is not None]
    return FragmentReport(
        fragment.id,
        fragment.physical_rows,
        fragment.num_deleted_rows,
        len(fragment.data_files),
        sum(sizes) if len(sizes) == len(fragment.data_files) else None,
    )


def _indices(snapshot: Snapshot, history: ReuseHistory) -> tuple[IndexReport, ...]:
    live = BitMap(fragment.id for fragment in snapshot.fragments)
    names = dict.fromkeys(segment.name for segment in snapshot.indices if not segment.is_system)
    paths = {field_id: path for field in snapshot.schema.fields for path, field_id in _paths(field)}
    return tuple(_index(snapshot, name, live, history, paths) for name in names)


def _paths(field: LanceField, above: str = "") -> Iterator[tuple[str, FieldId]]:
    path = f"{above}{field.name}"
    yield path, field.id
    for child in field.children:
        yield from _paths(child, f"{path}.")


def _index(
    snapshot: Snapshot,
    name: str,
    live: BitMap,
    history: ReuseHistory,
    paths: Mapping[FieldId, str],
) -> IndexReport:
    segments = [segment for segment in snapshot.indices if segment.name == name]
    covered = BitMap()
    for segment in segments:
        covered |= effective_coverage(segment, live, history)
    kind = segments[0].type_name.removesuffix("IndexDetails")
    return IndexReport(
        name,
        kind if kind != "" else _TEXT_OF_UNKNOWN,
        tuple(paths.get(field_id, f"field {field_id}") for field_id in segments[0].field_ids),
        len(segments),
        sum(file.size for segment in segments for file in segment.files),
        tuple(covered),
    )
