"""``lance-serve index optimize``, ``remap`` and ``drop``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from lance_core.operations.write_segment import MEMORY_BYTES
from service.cli.output import output
from service.cli.places import (
    BranchOption,
    DatasetArgument,
    MemoryOption,
    StorageOptions,
    open_for_command,
    parse_bytes,
    progress_bar,
    told_errors,
)

_Names = Annotated[
    list[str] | None,
    typer.Argument(help="Which indices; all that can be if left out.", metavar="[NAME...]"),
]


def optimize(
    dataset: DatasetArgument,
    names: _Names = None,
    merge: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="So many of the newest segments become one with the new rows; 1 if left out.",
        ),
    ] = None,
    delta: Annotated[
        bool, typer.Option("--delta", help="Give new rows a segment of their own: quick.")
    ] = False,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain",
            help="Build all segments anew as one; vectors get new centroids and codes.",
        ),
    ] = False,
    memory: MemoryOption = None,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Let indices cover rows that came since they were built, and have fewer segments.

    For example:

    `lance-serve index optimize a.lance` after rows were added

    `lance-serve index optimize a.lance vector_idx --retrain` where they are spread badly
    """
    if sum((merge is not None, delta, retrain)) > 1:
        raise typer.BadParameter("give one of --merge, --delta and --retrain")
    memory_bytes = MEMORY_BYTES if memory is None else parse_bytes(memory)
    with told_errors({"memory_bytes": "--memory", "num_segments_to_merge": "--merge"}):
        before = open_for_command(dataset, storage_option, branch)
        with progress_bar("optimizing", None) as bar:
            after = before.optimize_indices(
                names or None,
                num_segments_to_merge=0 if delta else 1 if merge is None else merge,
                retrain=retrain,
                memory_bytes=memory_bytes,
                progress=bar.move_to,
            )
        if after.version == before.version:
            output().print("nothing to do; nothing was committed")
            return
        old = {segment.uuid for segment in before.snapshot.indices}
        new = [each for each in after.snapshot.indices if each.uuid not in old]
        made = ", ".join(sorted({each.name for each in new if not each.is_system}))
        output().print(f"version {after.version}: optimized {escape(made)}")


def remap(
    dataset: DatasetArgument,
    names: _Names = None,
    memory: MemoryOption = None,
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Fold deferred compactions into indices, and forget those that none needs any more.

    Columns are not read. Zone maps and Bloom filters cannot follow: `lance-serve index optimize
    DATASET NAME --retrain` builds them anew.
    """
    memory_bytes = MEMORY_BYTES if memory is None else parse_bytes(memory)
    with told_errors({"memory_bytes": "--memory"}):
        before = open_for_command(dataset, storage_option, branch)
        with progress_bar("segments", None) as bar:
            after = before.remap_indices(
                names or None, memory_bytes=memory_bytes, progress=bar.move_to
            ).trim_reuse_index()
        if after.version == before.version:
            output().print("nothing to follow or to forget; nothing was committed")
            return
        output().print(f"version {after.version}: indices follow deferred compactions")


def drop(
    dataset: DatasetArgument,
    name: Annotated[str, typer.Argument(help="Name of the index.")],
    branch: BranchOption = None,
    storage_option: StorageOptions = None,
) -> None:
    """Remove an index of any kind; its files stay until cleanup, for older versions."""
    with told_errors({"trim_reuse_index": "`lance-serve index remap`"}):
        after = open_for_command(dataset, storage_option, branch).drop_index(name)
        output().print(f"version {after.version}: index {escape(name)} is gone")
