"""``lance-pipeline search``: answer many nearest-neighbour queries."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.errors import InvalidRequestError
from pipeline import search as job
from pipeline.query_files import query_files
from pipeline.search_output import LanceOutput, ParquetOutput
from pipeline.search_work import BatchSearch

if TYPE_CHECKING:
    from pipeline.cli.common import Shared


class PlanName(StrEnum):
    """What tasks share."""

    AUTO = "auto"
    A = "A"
    B = "B"


class OutputFormat(StrEnum):
    """What answers are written as."""

    PARQUET = "parquet"
    LANCE = "lance"


def search(
    shared: Shared,
    queries: Annotated[
        str,
        typer.Argument(
            help="Vectors to search by: a dataset, or a Parquet, JSON lines or Arrow file, a folder"
            " or a pattern of such."
        ),
    ],
    out: Annotated[
        str, typer.Argument(help="Where the answers go: a folder of its own, or a new dataset.")
    ],
    column: Annotated[
        str | None, typer.Option(help="Vector column of the dataset; the one that fits.")
    ] = None,
    query_column: Annotated[
        str | None,
        typer.Option(help="Column of the queries: lists, or bytes of float32; the one with lists."),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(help="Column that names the queries in the answers; counted from 0."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Rows wanted per query.")] = 10,
    nprobes: Annotated[
        int,
        typer.Option(
            help="Partitions of each segment to search; 0 = as near as the centroids are."
        ),
    ] = 20,
    refine_factor: Annotated[
        int,
        typer.Option(
            help="Rank so many times k rows by their exact distances; 0 = as the index estimates."
        ),
    ] = 1,
    ef: Annotated[
        int | None, typer.Option(help="Breadth of searches in graphs; one and a half times k.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="l2, cosine, dot or hamming; that of the index.")
    ] = None,
    row_filter: Annotated[
        str | None, typer.Option("--filter", help="Rows that may be found, such as `price < 10`.")
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Columns of the answers, between commas.")
    ] = "_rowid",
    plan: Annotated[
        PlanName, typer.Option(help="Tasks share the queries (A) or the index (B).")
    ] = PlanName.AUTO,
    query_block: Annotated[int, typer.Option(help="Queries of a task.")] = 4096,
    out_format: Annotated[
        OutputFormat, typer.Option("--format", help="What the answers are written as.")
    ] = OutputFormat.PARQUET,
) -> None:
    """Find the nearest rows of many vectors, as searches one by one would.

    The newest version is searched. Answers have `query_id`, `rank` from 0, the columns asked for
    and `_distance`; a dataset of answers has `distance`, `rowid` and `rowaddr` without underscores.
    """
    if min(nprobes, refine_factor) < 0 or query_block < 1:
        raise InvalidRequestError("--nprobes and --refine-factor are 0 or more, --query-block 1")
    asked = BatchSearch(
        column=column,
        k=k,
        nprobes=nprobes or None,
        refine_factor=refine_factor or None,
        metric=metric,
        filter=row_filter,
        ef=ef,
        columns=tuple(each.strip() for each in columns.split(",") if each.strip() != ""),
    )
    source = query_files(queries, shared.storage_options, column=query_column, id_column=id_column)
    options = tuple(sorted((shared.storage_options or {}).items()))
    make = ParquetOutput if out_format is OutputFormat.PARQUET else LanceOutput
    with shared.context(job.KIND) as context:
        answer = job.batch_search(
            context, asked, source, make(out, options), plan=plan.value, query_block=query_block
        )
        if not shared.dry_run:
            context.progress.event("summary", kind=job.KIND, **asdict(answer))
