"""``lance-pipeline trim-fri``: indices follow deferred compactions, which are forgotten then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.operations.write_segment import MEMORY_BYTES
from pipeline import trim

if TYPE_CHECKING:
    from pipeline.cli.common import Shared


def trim_fri(
    shared: Shared,
    remap: Annotated[
        bool,
        typer.Option(
            help="Write segments anew that have compactions to follow; otherwise only those are"
            " forgotten that all have followed."
        ),
    ] = True,
    max_versions: Annotated[
        int,
        typer.Option(
            help="Do nothing while so many compactions are remembered, or fewer, in no more than a"
            " mebibyte."
        ),
    ] = 8,
    memory: Annotated[
        int, typer.Option(help="Bytes that a worker may take to write a segment anew.")
    ] = MEMORY_BYTES,
) -> None:
    """Let indices follow deferred compactions, and forget those that no index needs any more."""
    with shared.context(trim.KIND) as context:
        report = trim.trim_fri(context, remap=remap, max_versions=max_versions, memory_bytes=memory)
        context.progress.event(
            "trimmed",
            version=report.version,
            compactions_before=report.num_before,
            compactions_left=report.num_after,
        )
