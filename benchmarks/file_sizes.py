"""Sizes of Lance files: what our writer makes of a table, and what the peer's makes of it.

``python -m benchmarks.file_sizes FILE.parquet ...`` prints them for whole files and for each of
their columns, and exits with 1 if one of our files is larger than allowed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from lance.file import LanceFileWriter as PeerWriter

from lance_core.encodings.version import FileVersion
from lance_core.file.writer import LanceFileWriter

MAX_RATIO = 1.15
"""Our size divided by the peer's, at the most."""


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Bytes of two files of the same rows."""

    ours: int
    peer: int

    @property
    def ratio(self) -> float:
        """Our size divided by the peer's."""
        return self.ours / self.peer


def file_sizes(table: pa.Table, version: FileVersion = FileVersion.V2_2) -> FileSizes:
    """Write a table with both writers and their defaults."""
    with tempfile.TemporaryDirectory() as folder:
        ours, peer = Path(folder) / "ours.lance", Path(folder) / "peer.lance"
        with LanceFileWriter.open_path(str(ours), table.schema, version=version) as writer:
            writer.write_batch(table)
        with PeerWriter(str(peer), table.schema, version=version.value) as peer_writer:
            for batch in table.to_batches():
                peer_writer.write_batch(batch)
        return FileSizes(ours.stat().st_size, peer.stat().st_size)


def _print(label: str, sizes: FileSizes) -> None:
    print(f"{label:44} {sizes.ours:12,} {sizes.peer:12,} {sizes.ratio:7.3f}")


def main() -> None:
    """Print the sizes of Parquet files as Lance files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    passed = True
    print(f"{'bytes':44} {'ours':>12} {'pylance':>12} {'ratio':>7}")
    for path in parser.parse_args().files:
        table = pq.read_table(path)
        for version in FileVersion:
            sizes = file_sizes(table, version)
            passed = passed and sizes.ratio <= MAX_RATIO
            _print(f"{path.name}, {version.value}", sizes)
        for name in table.column_names:
            _print(f"    {name}", file_sizes(table.select([name])))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
