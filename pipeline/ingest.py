"""Ingest of files: each task reads pieces of files and writes fragments, one commit takes them all.

No row crosses the JVM. The order of fragments is that of the files given, whoever wrote them when.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import InvalidRequestError, UnknownColumnError
from lance_core.file.arguments import checked_number
from pipeline.cluster import check_order, clustered, forget
from pipeline.convert import OnBadVector, dimension_of, is_vector, vector_field
from pipeline.ingest_items import Item, Written, joined, write_item
from pipeline.ingest_sources import Sources, packed
from pipeline.ingest_target import Mode, Place, commit_rows, plan_target
from pipeline.job import run_making_job
from pipeline.written_files import are_there, data_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lance_core.dataset import Dataset
    from pipeline.job import JobContext
    from pipeline.stages import Worker

TASK_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Vectors:
    """Which columns are vectors.

    Parameters
    ----------
    columns
        Their names; they come as lists of numbers or as bytes.
    dimension
        Of all; None = that of the first vector there is.
    on_bad
        What becomes of rows whose vector is of another length.

    Raises
    ------
    InvalidRequestError
        The dimension is less than 1, or of no column.
    """

    columns: tuple[str, ...] = ()
    dimension: int | None = None
    on_bad: OnBadVector = OnBadVector.ERROR

    def __post_init__(self) -> None:
        if self.dimension is not None:
            checked_number("dim", self.dimension, 1)
            if len(self.columns) == 0:
                raise InvalidRequestError(
                    "--dim is how many numbers vectors have; name their columns by --vector-column"
                )


@dataclass(frozen=True, slots=True)
class IngestJob:
    """Ingest of files as a job.

    Parameters
    ----------
    context
        Where it runs.
    place
        Where rows go.
    sources
        Where they come from.
    vectors
        Which columns are vectors.
    task_rows
        About how many rows a task has.
    skips_bad_items
        Whether the rows of tasks that fail for good are left out, and those of all others
        committed.
    cluster_by
        Columns to order rows by; none = rows stay in the order of the files.
    """

    context: JobContext
    place: Place
    sources: Sources
    vectors: Vectors
    task_rows: int
    skips_bad_items: bool
    cluster_by: tuple[str, ...] = ()
    kind: str = field(default="ingest", init=False)

    def params(self) -> dict[str, object]:
        """Return what was asked for."""
        place, sources, vectors = self.place, self.sources, self.vectors
        return {
            "paths": list(sources.paths),
            "format": sources.form,
            "types": {name: str(kind) for name, kind in sources.types.items()},
            "delimiter": sources.delimiter,
            "mode": place.mode.value,
            "max_rows_per_file": place.max_rows_per_file,
            "max_bytes_per_file": place.max_bytes_per_file,
            "data_storage_version": place.data_storage_version,
            "stable_row_ids": place.stable_row_ids,
            "vector_columns": list(vectors.columns),
            "dim": vectors.dimension,
            "on_bad_vector": vectors.on_bad.value,
            "task_rows": self.task_rows,
            "skip_bad_items": self.skips_bad_items,
            "cluster_by": list(self.cluster_by),
        }

    def plan(self, dataset: Dataset | None) -> list[bytes]:
        """Return items: pieces of files, with what they are to become; at least one."""
        files = self.sources.files()
        appended = dataset if self.place.mode is Mode.APPEND else None
        known = {} if appended is None else {each.name: each.type for each in appended.schema}
        read = self.sources.with_known(known).schema(files)
        read = self.sources.with_given(read, files)
        given = self.sources.declared(read)
        target = plan_target(self.place, dataset, given, self._dimensions(files, given, appended))
        check_order(target.aim, self.cluster_by)
        pieces = list(packed(self.sources.pieces(files, self.task_rows), self.task_rows))
        items = [Item(tuple(each), read, target) for each in pieces or [[]]]
        if self.cluster_by and not self.context.dry_run:
            items = self._clustered(items) or [Item((), read, target)]
        return [item.to_bytes() for item in items]

    def worker(self) -> Worker:
        """Return what writes the rows of an item."""
        form = None if self.cluster_by else self.sources.form
        sources = replace(self.sources, form=form)
        return partial(write_item, self.place, sources, self.vectors.on_bad, self.cluster_by)

    def commit(
        self, dataset: Dataset | None, results: Sequence[bytes], properties: Mapping[str, str]
    ) -> int:
        """Commit all fragments in the order of the items."""
        if len(results) == 0:
            raise InvalidRequestError("all tasks failed, so nothing is committed")
        written = joined(map(Written.of, results))
        self.context.progress.event("written", **written.facts())
        version = commit_rows(self.place, dataset, written.target, written.fragments, properties)
        if self.cluster_by:
            forget(self.context)
        return version

    def describe(self, item: bytes) -> str:
        """Return the files of an item."""
        pieces = Item.of(item).pieces
        names = list(dict.fromkeys(piece.path for piece in pieces))
        if len(names) == 0:
            return "no file"
        if len(names) > 1:
            return f"{names[0]} to {names[-1]}"
        return f"{names[0]} [{pieces[0].start}:{pieces[-1].end}]"

    def weigh(self, item: bytes) -> int:
        """Return about how many rows an item has."""
        return Item.of(item).num_rows

    def has_files(self, result: bytes) -> bool:
        """Tell whether the data files of a result are there, as large as they were."""
        files = data_files(Written.of(result).fragments)
        return are_there(self.place.uri, self.place.storage_options, files)

    def _clustered(self, items: Sequence[Item]) -> list[Item]:
        return clustered(
            self.context, self.sources, items, self.cluster_by, self.task_rows, self.vectors.on_bad
        )

    def _dimensions(
        self, files: Sequence[str], read: pa.Schema, appended: Dataset | None
    ) -> dict[str, int]:
        """Return the dimensions of columns that neither the files nor the dataset have as such."""
        found = {}
        for name in self.vectors.columns:
            if name not in read.names:
                raise UnknownColumnError(name, read.names, where="the columns of vectors")
            in_table = appended is not None and name in appended.schema.names
            if not (is_vector(read.field(name).type) or in_table):
                vector_field(read.field(name), 1)  # refused before rows are looked at
                found[name] = self._dimension(name, files, read)
        return found

    def _dimension(self, name: str, files: Sequence[str], read: pa.Schema) -> int:
        if self.vectors.dimension is not None:
            return self.vectors.dimension
        for path in files:
            form, file = self.sources.format_of(path), self.sources.open(path)
            for piece in form.pieces(file, self.task_rows):
                for batch in form.batches(file, piece, read):
                    column = batch.column(name) if name in batch.schema.names else pa.nulls(0)
                    found = None if len(column) == 0 else dimension_of(column)
                    if found is not None:
                        return found
        raise InvalidRequestError(f'column "{name}" holds no vector; give the dimension by --dim')


def ingest_files(
    context: JobContext,
    sources: Sources,
    place: Place,
    *,
    vectors: Vectors | None = None,
    task_rows: int = TASK_ROWS,
    skip_bad_items: bool = False,
    cluster_by: Sequence[str] = (),
) -> int:
    """Write the rows of files to a dataset, as one version, and return its number.

    Parameters
    ----------
    context
        Where the job runs.
    sources
        The files.
    place
        The dataset, which need not be there.
    vectors
        Which columns are vectors; those of the dataset need not be named.
    task_rows
        About how many rows a task has; fragments have at most as many.
    skip_bad_items
        Whether tasks that fail for good are left out.
    cluster_by
        Columns to order rows by. All rows are then written twice, and those of one value of the
        first column are in one task.

    Raises
    ------
    InvalidRequestError, TypeMismatchError, UnsupportedFeatureError
        The files cannot be read, or do not fit the dataset.
    StageFailedError
        Tasks failed for good; it names their files.
    """
    checked_number("task_rows", task_rows, 1)
    job = IngestJob(
        context,
        place,
        sources,
        Vectors() if vectors is None else vectors,
        task_rows,
        skip_bad_items,
        tuple(cluster_by),
    )
    return run_making_job(context, job)
