"""Streaming the rows of one file in batches of bounded size, decoded ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.encodings.rows import slice_ranges
from lance_core.file.blob_windows import cut_by_blobs
from lance_core.file.windows import (
    SharedDictionaries,
    WindowSizes,
    cut_batches,
    least_row_bytes,
    only_rows,
)
from lance_core.io.ahead import ahead
from lance_core.schema.arrow import to_arrow_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lance_core.file.columns import ColumnTarget
    from lance_core.file.reader import LanceFileReader

NUM_THREADS = 2
"""Windows that are decoded at the same time."""


def scan_schema(
    names: Sequence[str], targets: Sequence[ColumnTarget], metadata: Mapping[str, str]
) -> pa.Schema:
    """Return the schema of what a scan of these targets hands out, with the file's metadata."""
    return pa.schema(
        [
            to_arrow_field(target.served_field).with_name(name)
            for name, target in zip(names, targets, strict=True)
        ],
        metadata=dict(metadata) if len(metadata) > 0 else None,
    )


def scan_file(
    reader: LanceFileReader,
    schema: pa.Schema,
    targets: Sequence[ColumnTarget],
    ranges: Sequence[tuple[int, int]],
    *,
    batch_rows: int,
    batch_bytes: int,
    read_ahead: int,
    window_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all ranges one after another; see `LanceFileReader.scan`.

    ``window_bytes`` are decoded at once.
    """
    num_rows = sum(stop - start for start, stop in ranges)

    bytes_of_rows = reader.stored_bytes(targets)

    def stored_bytes(start: int, stop: int) -> float:
        if len(ranges) == 1:
            first = ranges[0][0]
            return bytes_of_rows(first + start, first + stop)
        return bytes_of_rows(0, reader.num_rows) * (stop - start) / reader.num_rows

    least = sum(least_row_bytes(target.arrow_type) for target in targets)
    sizes = WindowSizes(least, batch_rows, len(targets), window_bytes)

    def read(some: Sequence[ColumnTarget], start: int, stop: int) -> list[pa.Array]:
        return reader.read(some, slice_ranges(ranges, start, stop))

    def decode(start: int, stop: int) -> list[pa.Array]:
        return only_rows(stop - start) if len(targets) == 0 else read(targets, start, stop)

    windows = cut_by_blobs(sizes.windows(0, num_rows, stored_bytes), targets, read)
    tasks = (sizes.measured(start, stop, stored_bytes, decode) for start, stop in windows)
    dictionaries = SharedDictionaries(schema)

    def depth() -> int:
        return 0 if sizes.is_short(num_rows) else read_ahead

    for arrays in ahead(tasks, num_threads=NUM_THREADS, depth=depth):
        yield from cut_batches(dictionaries.window(arrays), batch_rows, batch_bytes)
