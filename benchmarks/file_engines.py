"""Both sides of the file benchmark behind the same calls; a process loads only its own side."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

SCAN_BATCH_ROWS = 8_192


class FileEngine(Protocol):
    """A library that reads and writes Lance files, opened by path."""

    def prepare(self) -> None:
        """Do what belongs to the start of a process."""

    def write(self, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a file with the library's defaults."""

    def open(self, path: Path) -> None:
        """Open a file; later calls read from it."""

    def scan(self) -> int:
        """Read all rows as a stream of batches that are dropped at once; return their number."""

    def take(self, rows: NDArray[np.int64]) -> int:
        """Read single rows; return their number."""


class LanceCoreFiles:
    """Our reader and writer."""

    def __init__(self) -> None:
        self._reader: Any = None
        self._targets: list[Any] = []

    def prepare(self) -> None:
        """Load the compiled kernels."""
        import_module("lance_core.kernels.warm").warm_kernels()

    def write(self, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a 2.2 file."""
        writer: Any = import_module("lance_core.file").LanceFileWriter
        with writer.open_path(path, schema) as out:
            for batch in batches:
                out.write_batch(batch)

    def open(self, path: Path) -> None:
        """Open a file."""
        reader: Any = import_module("lance_core.file").LanceFileReader
        self._reader = reader.open_path(path)
        self._targets = [self._reader.target(name) for name in self._reader.schema.names]

    def scan(self) -> int:
        """Read all rows."""
        batches = self._reader.scan(batch_rows=SCAN_BATCH_ROWS)
        return sum(batch.num_rows for batch in batches)

    def take(self, rows: NDArray[np.int64]) -> int:
        """Read single rows of all columns."""
        return len(self._reader.take(self._targets, rows)[0])


class PylanceFiles:
    """The peer's own file reader and writer."""

    def __init__(self) -> None:
        self._file: Any = import_module("lance.file")
        self._reader: Any = None

    def prepare(self) -> None:
        """Do nothing: its import loads compiled code."""

    def write(self, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Write a 2.2 file."""
        with self._file.LanceFileWriter(str(path), schema, version="2.2") as out:
            for batch in batches:
                out.write_batch(batch)

    def open(self, path: Path) -> None:
        """Open a file."""
        self._reader = self._file.LanceFileReader(str(path))

    def scan(self) -> int:
        """Read all rows."""
        batches = self._reader.read_all(batch_size=SCAN_BATCH_ROWS).to_batches()
        return sum(batch.num_rows for batch in batches)

    def take(self, rows: NDArray[np.int64]) -> int:
        """Read single rows; this reader wants them ascending and distinct."""
        return len(self._reader.take_rows(rows).to_table())


FILE_ENGINES: dict[str, type[FileEngine]] = {"ours": LanceCoreFiles, "pylance": PylanceFiles}
