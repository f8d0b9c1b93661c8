"""``lance-pipeline build-index``: an index of any type, built by tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.operations.new_index import NewIndex, usual_index_name, usual_index_type
from lance_core.operations.write_segment import MEMORY_BYTES
from pipeline.build import KIND, BuildIndex, BuildRequest
from pipeline.job import run_job

if TYPE_CHECKING:
    from pipeline.cli.common import Shared
    from pipeline.cli.index_parameters import IndexChoice


def build_index(
    shared: Shared,
    column: str,
    choice: IndexChoice,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the index; that of the column and `_idx`.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A model that `train` made; else one is trained first."),
    ] = None,
    independent_models: Annotated[
        bool,
        typer.Option(
            "--independent-models",
            help="Train a model for each segment: no training before, and no merging after.",
        ),
    ] = False,
    fragment: Annotated[
        list[int] | None,
        typer.Option(help="A fragment to cover; may be repeated. All if left out."),
    ] = None,
    num_segments: Annotated[
        int | None,
        typer.Option(help="Groups of fragments that a task builds each; as the rows ask for."),
    ] = None,
    segment_rows: Annotated[int, typer.Option(help="Rows of such a group.")] = 1 << 24,
    merge_to_rows: Annotated[
        int | None,
        typer.Option(
            help="What tasks built is merged to segments of so many rows, 0 = not at all;"
            " 134217728, and 0 for graphs, which a merge has to make anew."
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace the index of the name; else complete it."),
    ] = False,
    memory: Annotated[int, typer.Option(help="Bytes that a task may take.")] = MEMORY_BYTES,
) -> None:
    """Build an index over all rows, so that searches and filters need not look at each.

    For example:

    `lance-pipeline build-index --uri a.lance --column vector --metric cosine`

    `lance-pipeline build-index --uri a.lance --column text --index-type inverted`
    """
    with shared.context(KIND) as context:
        snapshot = context.open().snapshot
        index = NewIndex(
            usual_index_name(snapshot, column) if name is None else name,
            column,
            usual_index_type(snapshot, column) if choice.index_type is None else choice.index_type,
            choice.parameters,
        )
        request = BuildRequest(
            index,
            model=model,
            is_independent=independent_models,
            fragments=None if fragment is None else tuple(fragment),
            num_segments=num_segments,
            segment_rows=segment_rows,
            merge_to_rows=merge_to_rows,
            replace=replace,
            train=choice.train,
            memory_bytes=memory,
        )
        run_job(context, BuildIndex(context, request))
