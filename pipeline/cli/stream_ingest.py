"""``lance-pipeline stream-ingest``: files of a folder as they appear, each row once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.dataset import open_dataset
from lance_core.errors import DatasetNotFoundError, InvalidRequestError
from pipeline.progress import make_progress
from pipeline.session import make_session, stop_session
from pipeline.stream_files import FileStream
from pipeline.streaming import foreach_batch_writer, run_file_stream

if TYPE_CHECKING:
    from pipeline.cli.common import Shared
    from pipeline.stream_commit import Outcome


class FileFormat(StrEnum):
    """Files that can be streamed."""

    PARQUET = "parquet"
    JSON = "json"


def stream_ingest(
    shared: Shared,
    folder: Annotated[
        str, typer.Argument(help="Folder where files appear, as Spark writes places.")
    ],
    checkpoint: Annotated[
        str,
        typer.Option(
            help="Folder where Spark keeps which files were read; give the same one to go on.",
            show_default=False,
        ),
    ],
    source: Annotated[FileFormat, typer.Option(help="Format of the files.")] = FileFormat.PARQUET,
    trigger: Annotated[
        str | None,
        typer.Option(
            help="How often to look for new files, such as `1 minute`, until interrupted; reads"
            " what is there and ends if left out."
        ),
    ] = None,
    max_files: Annotated[int, typer.Option(min=1, help="Files of one commit at most.")] = 1000,
    vector_column: Annotated[
        str | None, typer.Option(help="Column of vectors, for a dataset that is made.")
    ] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="Dimension of its vectors.")] = None,
    query_id: Annotated[
        str | None,
        typer.Option(
            help="Name of the stream, by which commits are known to be done even when the"
            " checkpoint is lost; that of the checkpoint if left out."
        ),
    ] = None,
) -> None:
    """Append files of a folder as they appear; each row comes once, whatever fails.

    A commit per trigger makes fragments that are small: compact hourly.
    """
    if shared.job_id is not None or shared.dry_run:
        raise InvalidRequestError("streams have --query-id and --checkpoint, no job and no plan")
    if (vector_column is None) != (dim is None):
        raise InvalidRequestError("--vector-column and --dim go together")
    _check_checkpoint(shared, checkpoint)
    progress = make_progress(shared.progress_mode.value)

    def told(number: int, outcome: Outcome) -> None:
        if outcome.version is not None:
            progress.event("commit", version=outcome.version, epoch=number)

    write = foreach_batch_writer(
        shared.uri,
        storage_options=shared.storage_options,
        query_id=query_id,
        checkpoint=checkpoint,
        vectors=None if vector_column is None or dim is None else {vector_column: dim},
        told=told,
    )
    spark = make_session(shared.master, shared.conf, app_name="lance-pipeline stream-ingest")
    try:
        run_file_stream(spark, FileStream(folder, source, checkpoint, trigger, max_files), write)
    except KeyboardInterrupt:
        progress.event("interrupted", resume="the same command")
    finally:
        stop_session(spark)


def _check_checkpoint(shared: Shared, checkpoint: str) -> None:
    """Refuse a checkpoint that has seen files, where there is no dataset that has their rows."""
    seen = "://" not in checkpoint and any(Path(checkpoint).glob("commits/*"))
    if not seen:
        return
    try:
        open_dataset(shared.uri, storage_options=shared.storage_options)
    except DatasetNotFoundError as error:
        raise InvalidRequestError(
            f"{checkpoint} has been used, and there is no dataset at {shared.uri}: files that it"
            " has seen would not come again; give the dataset that it belongs to, or another"
            " checkpoint"
        ) from error
