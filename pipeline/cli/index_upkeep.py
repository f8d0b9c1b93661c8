"""``lance-pipeline merge``, ``refresh-index`` and ``optimize-index``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.operations.write_segment import MEMORY_BYTES
from pipeline import merge as merging, optimize as optimizing, refresh as refreshing
from pipeline.job import run_job

if TYPE_CHECKING:
    from pipeline.cli.common import Shared

NamesOption = Annotated[
    list[str] | None,
    typer.Option("--name", help="An index; may be repeated. All if left out.", show_default=False),
]
MemoryOption = Annotated[int, typer.Option(help="Bytes that a task may take.")]
SegmentRowsOption = Annotated[
    int, typer.Option(help="Rows of a group of fragments that a task reads.")
]


def merge(
    shared: Shared,
    name: Annotated[str, typer.Option(help="The index.")],
    merge_to_rows: Annotated[
        int, typer.Option(help="Neighbours become one as long as they have not more rows.")
    ] = merging.MERGE_TO_ROWS,
    memory: MemoryOption = MEMORY_BYTES,
) -> None:
    """Make few segments of the many that an index has, without reading the column.

    Those of vectors have to share a model; `optimize-index` codes rows of others anew.
    """
    with shared.context(merging.KIND) as context:
        request = merging.MergeRequest(name, merge_to_rows, memory)
        run_job(context, merging.MergeSegments(context, request))


def refresh_index(
    shared: Shared,
    name: NamesOption = None,
    num_segments: Annotated[
        int | None,
        typer.Option(help="Groups of fragments that a task reads each; as the rows ask for."),
    ] = None,
    segment_rows: SegmentRowsOption = 1 << 24,
    memory: MemoryOption = MEMORY_BYTES,
) -> None:
    """Cover fragments that came since an index was built, by the model that it has.

    Where all is covered, nothing is committed.
    """
    with shared.context(refreshing.KIND) as context:
        request = refreshing.RefreshRequest("", num_segments, segment_rows, memory)
        optimizing.refresh_indices(context, name, request)


def optimize_index(
    shared: Shared,
    name: NamesOption = None,
    max_segments: Annotated[int, typer.Option(help="Segments that an index may have.")] = 8,
    min_segment_rows: Annotated[
        int, typer.Option(help="The newest segments of fewer rows are joined.")
    ] = 1_000_000,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Build indices anew, of vectors by a new model.")
    ] = False,
    retrain_if_growth: Annotated[
        float,
        typer.Option(
            help="Do so with an index of vectors that has more than so many times the rows that it"
            " was trained with; 0 = never. Indices tell that were built by `build-index`."
        ),
    ] = 2.0,
    retrain_if_error: Annotated[
        float,
        typer.Option(
            help="Do so too where new rows, a tenth of all or more, are on average so many times as"
            " far from their centroids as those that it was trained with; 0 = never."
        ),
    ] = 1.2,
    segment_rows: SegmentRowsOption = 1 << 24,
    memory: MemoryOption = MEMORY_BYTES,
) -> None:
    """Keep indices in shape: cover new fragments, join small segments, follow compactions."""
    with shared.context(optimizing.KIND) as context:
        request = optimizing.OptimizeRequest(
            max_segments,
            min_segment_rows,
            retrain,
            None if retrain_if_growth == 0 else retrain_if_growth,
            None if retrain_if_error == 0 else retrain_if_error,
            segment_rows,
            memory,
        )
        optimizing.optimize_indices(context, name, request)
