"""The command ``lance-pipeline``."""

from __future__ import annotations

import typer

from pipeline.cli.build_index import build_index
from pipeline.cli.cleanup import cleanup
from pipeline.cli.common import with_shared_options
from pipeline.cli.compact import compact
from pipeline.cli.index_parameters import with_index_options
from pipeline.cli.index_upkeep import merge, optimize_index, refresh_index
from pipeline.cli.ingest import ingest
from pipeline.cli.search import search
from pipeline.cli.status import status
from pipeline.cli.stream_ingest import stream_ingest
from pipeline.cli.train import train
from pipeline.cli.trim_fri import trim_fri

app = typer.Typer(
    name="lance-pipeline",
    help="Make Lance datasets and their indices on Spark, and keep them in shape.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
)


@app.callback()
def lance_pipeline() -> None:
    """Make Lance datasets and their indices on Spark, and keep them in shape."""


_ROWS = "Rows"
app.command("ingest", rich_help_panel=_ROWS)(with_shared_options(ingest))
app.command("stream-ingest", rich_help_panel=_ROWS)(with_shared_options(stream_ingest))

_QUERIES = "Queries"
app.command("search", rich_help_panel=_QUERIES)(with_shared_options(search))

_INDICES = "Indices"
app.command("train", rich_help_panel=_INDICES)(with_shared_options(with_index_options(train)))
app.command("build-index", rich_help_panel=_INDICES)(
    with_shared_options(with_index_options(build_index))
)
app.command("merge", rich_help_panel=_INDICES)(with_shared_options(merge))
app.command("refresh-index", rich_help_panel=_INDICES)(with_shared_options(refresh_index))
app.command("optimize-index", rich_help_panel=_INDICES)(with_shared_options(optimize_index))

_UPKEEP = "Upkeep"
app.command("compact", rich_help_panel=_UPKEEP)(with_shared_options(compact))
app.command("trim-fri", rich_help_panel=_UPKEEP)(with_shared_options(trim_fri))
app.command("cleanup", rich_help_panel=_UPKEEP)(with_shared_options(cleanup))
app.command("status", rich_help_panel=_UPKEEP)(with_shared_options(status))
