"""Files of vectors to search by: those that ingest reads, and datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.dataset import open_dataset
from lance_core.errors import DatasetNotFoundError
from pipeline.ingest_sources import Sources
from pipeline.search import QuerySource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

_PIECE_ROWS = 1 << 20


def query_files(
    path: str,
    storage_options: Mapping[str, str] | None = None,
    *,
    form: str | None = None,
    column: str | None = None,
    id_column: str | None = None,
) -> QuerySource:
    """Return the queries of a dataset, a file, or a folder or pattern of files.

    Parameters
    ----------
    path
        Path or URI. What Spark has written as Parquet is a folder of files.
    storage_options
        Of its store.
    form
        Format of files; None = as their names tell.
    column, id_column
        See `pipeline.search_queries.store_queries`.

    Raises
    ------
    InvalidRequestError
        When it is read: there is no such file, or it is of no format that is read.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            dataset = open_dataset(path, storage_options=storage_options)
        except DatasetNotFoundError:
            yield from _rows_of_files(Sources((path,), storage_options, form))
            return
        wanted = None if column is None else [column, *([id_column] if id_column else [])]
        yield from dataset.scan(wanted)

    return QuerySource(path, batches, column, id_column)


def _rows_of_files(sources: Sources) -> Iterator[pa.RecordBatch]:
    files = sources.files()
    schema = sources.schema(files)
    for piece in sources.pieces(files, _PIECE_ROWS):
        file = sources.open(piece.path)
        yield from sources.format_of(piece.path).batches(file, piece, schema)
