"""``lance-serve ingest``: write files of rows to a dataset."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from lance_core.dataset import write_dataset
from service.cli.places import (
    DatasetArgument,
    StorageOptions,
    parse_options,
    progress_bar,
    rows_text,
    told_errors,
)
from service.cli.source_files import SourceFiles, with_vectors


class Mode(StrEnum):
    """What becomes of a dataset that is there already."""

    APPEND = "append"
    CREATE = "create"
    OVERWRITE = "overwrite"


def ingest(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Parquet, CSV, TSV, JSON lines or Arrow files, by their names; CSV and JSON may be"
            " compressed.",
            metavar="FILE...",
        ),
    ],
    dataset: DatasetArgument,
    mode: Annotated[
        Mode, typer.Option(help="What becomes of a dataset that is there already.")
    ] = Mode.APPEND,
    vector: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of lists that are vectors, all of one length; may be repeated. Vector"
            " search needs it.",
        ),
    ] = None,
    max_rows_per_file: Annotated[int, typer.Option(help="Rows of a fragment.")] = 1 << 20,
    data_storage_version: Annotated[
        str | None, typer.Option(help="2.0, 2.1 or 2.2; that of the dataset, or 2.2.")
    ] = None,
    stable_row_ids: Annotated[
        bool, typer.Option("--stable-row-ids", help="Of a new dataset: rows keep their ids.")
    ] = False,
    storage_option: StorageOptions = None,
) -> None:
    """Write the rows of files to a dataset, as one version, in bounded memory."""
    with told_errors():
        source = SourceFiles(files)
        with progress_bar("rows", source.count_rows()) as bar:
            rows = with_vectors(source.schema, source.batches(bar.advance), vector or [])
            written = write_dataset(
                dataset,
                rows,
                mode=mode.value,
                max_rows_per_file=max_rows_per_file,
                data_storage_version=data_storage_version,
                stable_row_ids=stable_row_ids,
                storage_options=parse_options(storage_option),
            )
        Console().print(
            f"version {written.version}: {rows_text(written.count_rows())},"
            f" {len(written.snapshot.fragments)} fragments"
        )
