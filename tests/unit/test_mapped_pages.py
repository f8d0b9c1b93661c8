"""Pages of mapped files are given back to the kernel, and come again when they are touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lance_core.io.file_maps import give_back_pages
from lance_core.io.mapped_store import MappedStore

NUM_BYTES = 64 << 20


def mapped_bytes():
    """Return how much of this process's memory is pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("RssFile:")]
    return int(line.split()[1]) << 10


def test_pages_that_are_given_back_are_read_again(tmp_path):
    stored = np.random.default_rng(1).integers(256, size=NUM_BYTES, dtype=np.uint8)
    stored.tofile(tmp_path / "data")
    (tmp_path / "empty").touch()
    store = MappedStore(tmp_path)
    assert len(store.get_range("empty", 0, 0)) == 0
    view = np.frombuffer(store.get_range("data", 0, NUM_BYTES), np.uint8)
    np.testing.assert_array_equal(view, stored)
    touched = mapped_bytes()
    give_back_pages()
    assert touched - mapped_bytes() > NUM_BYTES // 2
    np.testing.assert_array_equal(view, stored)
