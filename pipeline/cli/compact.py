"""``lance-pipeline compact``: few whole fragments out of many small ones."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.operations.compact_config import compaction_setting, truth
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions
from lance_core.operations.lost_coverage import lost_coverage
from lance_core.operations.write_segment import MEMORY_BYTES
from pipeline import compact as job
from pipeline.compact_plan import CompactionWish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.dataset import Dataset
    from pipeline.cli.common import Shared
    from pipeline.job import JobContext


class Otherwise(StrEnum):
    """What becomes of indices on rows that cannot be deferred."""

    REMAP = "remap"
    DROP_COVERAGE = "drop_coverage"


def compact(
    shared: Shared,
    target_rows_per_fragment: Annotated[
        int | None, typer.Option(help="Fragments of fewer rows are joined with neighbours.")
    ] = None,
    max_bytes_per_file: Annotated[
        int | None, typer.Option(help="Bytes of rows, before encoding, of a fragment.")
    ] = None,
    materialize_deletions: Annotated[
        bool | None,
        typer.Option(help="Write fragments anew of which a large share is deleted; yes."),
    ] = None,
    materialize_deletions_threshold: Annotated[
        float | None, typer.Option(help="What share is large; 0.1.")
    ] = None,
    defer_index_remap: Annotated[
        bool | None,
        typer.Option(
            help="Leave indices as they are, and record where rows are now; `trim-fri` lets them"
            " follow. Yes, except where readers could not follow: rows with stable ids, and"
            " deleted rows in graphs."
        ),
    ] = None,
    otherwise: Annotated[
        Otherwise,
        typer.Option(
            help="What becomes of indices there: `remap` writes them anew,"
            " `drop_coverage` lets searches scan the new fragments until `refresh-index`."
        ),
    ] = Otherwise.REMAP,
    max_source_fragments: Annotated[
        int | None, typer.Option(help="Fragments to read at most; all that are worth it.")
    ] = None,
    commit_every: Annotated[
        int,
        typer.Option(
            help="Commit after so many groups of fragments, 64 or more; 0 = all at once. Each"
            " commit is a version that readers have to follow."
        ),
    ] = 0,
    memory: Annotated[
        int, typer.Option(help="Bytes that a worker may take to write a segment anew.")
    ] = MEMORY_BYTES,
) -> None:
    """Write fragments that are small, or full of deleted rows, anew as few whole ones.

    What is left out is what the configuration of the dataset says.
    """
    with shared.context(job.KIND) as context:
        before = context.open()
        config = before.config
        wish = CompactionWish(
            options=_options(
                config,
                target_rows_per_fragment,
                max_bytes_per_file,
                materialize_deletions,
                materialize_deletions_threshold,
            ),
            defers=_defers(config) if defer_index_remap is None else defer_index_remap,
            otherwise=IndexTreatment(otherwise.value),
            max_source_fragments=max_source_fragments,
            memory_bytes=memory,
        )
        version = job.compact(context, wish, commit_every=commit_every)
        if not shared.dry_run:
            _tell(context, version, before)


def _tell(context: JobContext, version: int, before: Dataset) -> None:
    after = context.open()  # the version may be gone, if the job was done long ago
    for name, num_rows in lost_coverage(before.snapshot, after.snapshot).items():
        context.progress.event(
            "warning",
            message=f"index {name} leaves {num_rows} rows more to scans; refresh-index covers them",
        )
    context.progress.event(
        "compacted",
        version=version,
        fragments_before=len(before.snapshot.fragments),
        fragments=len(after.snapshot.fragments),
    )


def _options(
    config: Mapping[str, str],
    rows: int | None,
    num_bytes: int | None,
    materializes: bool | None,
    threshold: float | None,
) -> CompactionOptions:
    usual = CompactionOptions.of_config(config)
    share = usual.deletions_threshold if threshold is None else threshold
    if materializes is True and share is None:
        share = CompactionOptions().deletions_threshold
    return CompactionOptions(
        usual.target_rows_per_fragment if rows is None else rows,
        None if materializes is False else share,
        usual.max_bytes_per_file if num_bytes is None else num_bytes,
    )


def _defers(config: Mapping[str, str]) -> bool:
    """Return what the configuration says of deferring, and what is usual here if it is silent."""
    return compaction_setting(config, "defer_index_remap", truth) is not False
