"""Reading files compiles nothing that warming did not compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from lance_core.file.reader import LanceFileReader
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.kernels import (
    bitpacking,
    direct_rows,
    fsst,
    full_zip,
    gather,
    memory,
    mini_block,
    rle,
)
from lance_core.kernels.warm import warm_kernels
from tests.lance_columns import VERSIONS, lance_file, not_written, open_bytes, sample_columns

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop
MODULES = [bitpacking, direct_rows, fsst, full_zip, gather, memory, mini_block, rle]


def signatures() -> dict[str, int]:
    return {
        f"{module.__name__}.{name}": len(value.signatures)
        for module in MODULES
        for name, value in vars(module).items()
        if hasattr(value, "signatures")
    }


def test_reading_every_encoding_compiles_no_kernel(tmp_path: Path) -> None:
    warm_kernels()
    warm = signatures()
    rows = np.array([7, 3, 40, 40])
    rows.setflags(write=False)
    mapped = RangeScheduler(MappedStore(tmp_path))
    for number, (name, (column, metadata)) in enumerate(sample_columns().items()):
        version = VERSIONS[number % len(VERSIONS)]
        if len(column) < 100 or not_written(name, version):
            continue
        data = lance_file(column, version, metadata)
        (tmp_path / f"{number}.lance").write_bytes(data)
        for reader in (open_bytes(data), LanceFileReader.open(mapped, f"{number}.lance")):
            targets = [reader.target("c")]
            reader.read(targets, [(5, 60)])
            reader.read(targets, [(60, 90), (5, 30), (7, 8)])
            reader.take(targets, rows)
    assert signatures() == warm
