"""``lance-serve compact``: few whole fragments out of many small ones."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from lance_core.operations.compact_indices import IndexTreatment  # noqa: TC001 - typer reads it
from lance_core.operations.lost_coverage import lost_coverage
from lance_core.operations.write_segment import MEMORY_BYTES
from service.cli.output import output
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    MemoryOption,
    StorageOptions,
    counted,
    open_for_command,
    parse_bytes,
    progress_bar,
    told_errors,
)

_OPTIONS = {
    "target_rows_per_fragment": "--target-rows",
    "deletions_threshold": "--deletions-threshold",
    "memory_bytes": "--memory",
}
"""What users type for the arguments of the library."""


def compact(
    dataset: DatasetArgument,
    indices: Annotated[
        IndexTreatment | None,
        typer.Option(
            help="What becomes of indices on rows that move: `defer` records where rows are now,"
            " `drop_coverage` lets searches scan the new fragments, `remap` writes them anew; what"
            " the dataset is configured for if left out."
        ),
    ] = None,
    target_rows: Annotated[
        int | None, typer.Option(help="Fragments of fewer rows are joined with neighbours.")
    ] = None,
    deletions_threshold: Annotated[
        float | None,
        typer.Option(help="Fragments of which a larger share is deleted are written anew."),
    ] = None,
    memory: MemoryOption = None,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Write fragments that are small, or full of deleted rows, anew as few whole ones."""
    memory_bytes = MEMORY_BYTES if memory is None else parse_bytes(memory)
    with told_errors(_OPTIONS):
        before = open_for_command(dataset, storage_option, branch)
        with progress_bar("groups of fragments", None) as bar:
            after = before.compact(
                indices=None if indices is None else indices.value,
                target_rows_per_fragment=target_rows,
                deletions_threshold=deletions_threshold,
                memory_bytes=memory_bytes,
                progress=bar.move_to,
            )
        if after.version == before.version:
            output().print("nothing to gain; nothing was committed")
            return
        counts = [len(each.snapshot.fragments) for each in (before, after)]
        were = counted(counts[0], "fragment")
        output().print(f"version {after.version}: {were} became {counts[1]}")
        for name, num_rows in lost_coverage(before.snapshot, after.snapshot).items():
            output().print(
                f"index {escape(name)} covers {counted(num_rows, 'row')} less; optimize it, or they"
                " are scanned"
            )
