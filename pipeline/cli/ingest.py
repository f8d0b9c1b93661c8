"""``lance-pipeline ingest``: write files of rows to a dataset."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer

from lance_core.errors import InvalidRequestError
from pipeline import ingest as job
from pipeline.convert import OnBadVector
from pipeline.ingest_sources import Sources
from pipeline.ingest_target import Mode, Place

if TYPE_CHECKING:
    from pipeline.cli.common import Shared


class Format(StrEnum):
    """Formats of files."""

    PARQUET = "parquet"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    ARROW = "arrow"


def ingest(
    shared: Shared,
    files: Annotated[
        list[str],
        typer.Argument(
            help="Parquet, CSV, TSV, JSON lines or Arrow files, by their names; also folders, and"
            " patterns such as `'data/*.parquet'`. Workers read them, so they lie where all can.",
            metavar="FILE...",
        ),
    ],
    mode: Annotated[
        Mode, typer.Option(help="What becomes of a dataset that is there already.")
    ] = Mode.APPEND,
    file_format: Annotated[
        Format | None, typer.Option("--format", help="Of all files; as their names tell.")
    ] = None,
    vector_column: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of lists of numbers, or of bytes of float32, that are vectors; may be"
            " repeated. Columns of the dataset need not be named."
        ),
    ] = None,
    dim: Annotated[
        int | None, typer.Option(help="Dimension of vectors; that of the first.")
    ] = None,
    on_bad_vector: Annotated[
        OnBadVector, typer.Option(help="What becomes of vectors of another dimension.")
    ] = OnBadVector.ERROR,
    column_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMN=TYPE",
            help="Arrow type that a column is to have, such as `zip=string` or `day=date32`; may be"
            " repeated.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between values of CSV files, such as `;`.")
    ] = None,
    skip_bad_items: Annotated[
        bool,
        typer.Option("--skip-bad-items", help="Leave out tasks that fail, and commit the rest."),
    ] = False,
    cluster_by: Annotated[
        list[str] | None,
        typer.Option(help="Column to order rows by; may be repeated. All are written twice then."),
    ] = None,
    task_rows: Annotated[int, typer.Option(help="About how many rows a task has.")] = job.TASK_ROWS,
    max_rows_per_file: Annotated[int, typer.Option(help="Rows of a fragment.")] = 1 << 20,
    max_bytes_per_file: Annotated[
        int, typer.Option(help="Bytes of rows, before encoding, of a fragment.")
    ] = 90 << 30,
    data_storage_version: Annotated[
        str | None, typer.Option(help="2.0, 2.1 or 2.2; that of the dataset, or 2.2.")
    ] = None,
    stable_row_ids: Annotated[
        bool, typer.Option("--stable-row-ids", help="Of a new dataset: rows keep their ids.")
    ] = False,
) -> None:
    """Write the rows of files to a dataset, as one version, in the order of the files."""
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise InvalidRequestError("--delimiter is one character of ASCII")
    place = Place(
        shared.uri,
        shared.storage_options,
        mode,
        max_rows_per_file,
        max_bytes_per_file,
        data_storage_version,
        stable_row_ids,
    )
    sources = Sources(
        tuple(files),
        shared.storage_options,
        None if file_format is None else file_format.value,
        _types(column_type),
        delimiter,
    )
    vectors = job.Vectors(tuple(vector_column or ()), dim, on_bad_vector)
    with shared.context("ingest") as context:
        job.ingest_files(
            context,
            sources,
            place,
            vectors=vectors,
            task_rows=task_rows,
            skip_bad_items=skip_bad_items,
            cluster_by=cluster_by or (),
        )


def _types(given: list[str] | None) -> dict[str, pa.DataType]:
    types = {}
    for each in given or []:
        name, equals, kind = each.rpartition("=")
        try:
            types[name] = pa.type_for_alias(kind)
        except ValueError as error:
            raise InvalidRequestError(f"{kind!r} is no type; write --type COLUMN=TYPE") from error
        if equals == "":
            raise InvalidRequestError(f"{each!r} names no column; write --type COLUMN=TYPE")
    return types
