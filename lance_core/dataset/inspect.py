"""What a dataset holds at one version: rows, fragments, deletions, indices and their coverage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from lance_core.dataset.advice import CommandTarget, RowFacts, advise
from lance_core.dataset.places import branch_of, root_of
from lance_core.errors import InvalidRequestError
from lance_core.operations.compact_plan import CompactionOptions, plan_compaction
from lance_core.query.describe_indices import indices_of
from lance_core.schema.arrow import to_arrow_schema
from lance_core.table.reuse_of_version import reuse_of
from lance_core.table.reuse_trim import growth

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset.advice import Advice
    from lance_core.dataset.face import Dataset
    from lance_core.query.index_statistics import IndexStatistics
    from lance_core.table.fragment import Fragment
    from lance_core.table.reuse_trim import ReuseGrowth


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
class DatasetReport:
    """Everything; ``schema`` gives the type of each column as Arrow writes it.

    ``reuse`` is None where no compaction was deferred. ``advice`` is for the newest version only.
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
    indices: tuple[IndexStatistics, ...]
    reuse: ReuseGrowth | None
    advice: tuple[Advice, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values, ready for JSON."""
        return {**asdict(self), "indices": [each.to_dict() for each in self.indices]}


def inspect_dataset(dataset: Dataset) -> DatasetReport:
    """Describe a dataset at its version; reads all manifests, no rows, and of indices no rows.

    Raises
    ------
    CorruptFileError
        A manifest or a deletion file contradicts the format.
    UnsupportedFeatureError
        A version needs a feature that this release lacks.
    """
    snapshot = dataset.snapshot
    data_files = [file for fragment in snapshot.fragments for file in fragment.data_files]
    file_versions = {f"{file.major_version}.{file.minor_version}" for file in data_files}
    indices, versions = indices_of(dataset.session, snapshot), _versions(dataset)
    is_newest = dataset.version == versions[-1].version
    return DatasetReport(
        uri=dataset.uri,
        version=dataset.version,
        branch=branch_of(snapshot),
        num_rows=dataset.count_rows(),
        schema={field.name: str(field.type) for field in to_arrow_schema(snapshot.schema)},
        data_storage_versions=tuple(sorted(file_versions)),
        has_stable_row_ids=snapshot.has_stable_row_ids,
        config=dataset.config,
        branches=tuple(branch.name for branch in dataset.branches()),
        versions=versions,
        fragments=tuple(_fragment(fragment) for fragment in snapshot.fragments),
        indices=indices,
        reuse=_reuse(dataset),
        advice=advice_for(dataset, indices) if is_newest else (),
    )


def advice_for(dataset: Dataset, indices: Sequence[IndexStatistics]) -> tuple[Advice, ...]:
    """Measure what advice goes by, and return what there is to mend.

    Parameters
    ----------
    dataset
        The dataset, at its newest version.
    indices
        Its indices.
    """
    snapshot = dataset.snapshot
    target = CommandTarget(root_of(snapshot).store.uri, branch_of(snapshot))
    return advise(target, indices, _reuse(dataset), _row_facts(dataset))


def _reuse(dataset: Dataset) -> ReuseGrowth | None:
    snapshot = dataset.snapshot
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    return growth(history, snapshot.indices) if len(history.versions) > 0 else None


def _row_facts(dataset: Dataset) -> RowFacts:
    snapshot, files = dataset.snapshot, dataset.session.files
    num_rows = sum(each.physical_rows for each in snapshot.fragments)
    try:
        options = CompactionOptions.of_config(snapshot.manifest.config)
        tasks = plan_compaction(files, snapshot, options)
    except InvalidRequestError:  # a configuration that means nothing, as a compaction will say
        tasks = []
    return RowFacts(
        num_fragments=len(snapshot.fragments),
        num_rows=num_rows,
        num_deleted_rows=num_rows - dataset.count_rows(),
        num_compactable=sum(len(task.fragment_ids) for task in tasks),
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
