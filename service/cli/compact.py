"""``lance-serve compact``: few whole fragments out of many small ones."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from lance_core.operations.compact_indices import IndexTreatment  # noqa: TC001 - typer reads it
from lance_core.operations.lost_coverage import lost_coverage
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    StorageOptions,
    open_for_command,
    progress_bar,
    told_errors,
)


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
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Write fragments that are small, or full of deleted rows, anew as few whole ones."""
    with told_errors():
        before = open_for_command(dataset, storage_option, branch)
        with progress_bar("groups of fragments", None) as bar:
            after = before.compact(
                indices=None if indices is None else indices.value,
                target_rows_per_fragment=target_rows,
                deletions_threshold=deletions_threshold,
                progress=bar.move_to,
            )
        if after.version == before.version:
            Console().print("nothing to gain; nothing was committed")
            return
        counts = [len(each.snapshot.fragments) for each in (before, after)]
        Console().print(f"version {after.version}: {counts[0]} fragments became {counts[1]}")
        for name, num_rows in lost_coverage(before.snapshot, after.snapshot).items():
            Console().print(
                f"index {name} covers {num_rows:,} rows less; optimize it, or they are scanned"
            )
