"""Datasets of older Lance releases, unpacked once per run."""

from __future__ import annotations

import functools
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

ARCHIVES = Path(__file__).parent.parent / "data" / "old-versions"

OldDataset = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def old_dataset(tmp_path_factory: pytest.TempPathFactory) -> OldDataset:
    """Return a function from release and name to the path of ``NAME.lance``.

    Its companions ``NAME.json``, ``NAME.expect.json`` and ``NAME.truth.parquet`` lie beside it.
    """

    @functools.cache
    def unpack(release: str) -> Path:
        folder = tmp_path_factory.mktemp(f"pylance-{release}")
        for path in ARCHIVES.glob(f"pylance-{release}*.tar.xz"):
            with tarfile.open(path) as archive:
                # Python before 3.11.4 has no filters; the archives are ours, so it may do without.
                archive.extraction_filter = getattr(
                    tarfile, "data_filter", lambda member, _: member
                )
                archive.extractall(folder)  # noqa: S202 - the filter is set above
        return folder / release

    def find(release: str, name: str) -> Path:
        return unpack(release) / f"{name}.lance"

    return find
