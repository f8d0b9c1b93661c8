"""``lance-serve ingest``: write files of rows to a dataset."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pyarrow as pa
import typer

from lance_core.dataset import open_dataset, write_dataset
from lance_core.errors import DatasetNotFoundError
from service.cli.output import output
from service.cli.places import (
    DatasetArgument,
    StorageOptions,
    counted,
    parse_options,
    progress_bar,
    told_errors,
)
from service.cli.source_files import SourceFiles
from service.cli.source_vectors import with_vectors


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
    column_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMN=TYPE",
            help="Arrow type of a column, such as `zip=string` or `day=date32`; may be repeated."
            " Columns of an existing dataset have theirs.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Between values of CSV files, such as `;`.")
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
        options = parse_options(storage_option)
        types = {} if mode is not Mode.APPEND else _types_of(dataset, options)
        source = SourceFiles(files, {**types, **_parse_types(column_type)}, _one_char(delimiter))
        with progress_bar("rows", source.count_rows()) as bar:
            rows = with_vectors(source.schema, source.batches(bar.advance), vector or [])
            written = write_dataset(
                dataset,
                rows,
                mode=mode.value,
                max_rows_per_file=max_rows_per_file,
                data_storage_version=data_storage_version,
                stable_row_ids=stable_row_ids,
                storage_options=options,
            )
        output().print(
            f"version {written.version}: {counted(written.count_rows(), 'row')},"
            f" {counted(len(written.snapshot.fragments), 'fragment')}"
        )


def _types_of(dataset: str, storage_options: dict[str, str] | None) -> dict[str, pa.DataType]:
    """Return the types of the columns of a dataset, none if it is not there yet."""
    try:
        schema = open_dataset(dataset, storage_options=storage_options).schema
    except DatasetNotFoundError:
        return {}
    return {field.name: field.type for field in schema}


def _parse_types(given: list[str] | None) -> dict[str, pa.DataType]:
    types = {}
    for each in given or []:
        name, equals, kind = each.rpartition("=")
        try:
            types[name] = pa.type_for_alias(kind)
        except ValueError as error:
            raise typer.BadParameter(f"{kind!r} is no type; write COLUMN=TYPE") from error
        if equals == "":
            raise typer.BadParameter(f"{each!r} names no column; write COLUMN=TYPE")
    return types


def _one_char(delimiter: str | None) -> str | None:
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise typer.BadParameter("the delimiter is one character of ASCII")
    return delimiter
