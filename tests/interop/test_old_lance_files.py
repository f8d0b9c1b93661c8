"""Every data and index file of older releases reads as pylance's own file reader reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lance.file import LanceFileReader as PylanceFileReader

from lance_core.errors import UnsupportedFeatureError
from lance_core.file import LanceFileReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

FEWEST_FILES = {"0.20.0": 15, "1.0.4": 20, "10.0.0": 20}


def files_of(folder: Path) -> Iterator[Path]:
    for suffix in ("lance", "idx"):
        yield from (path for path in folder.glob(f"**/*.{suffix}") if path.is_file())


@pytest.mark.parametrize("release", FEWEST_FILES)
def test_files_of_old_releases_read_as_pylance_reads_them(
    old_dataset: Callable[[str, str], Path], release: str
) -> None:
    num_equal = 0
    for path in files_of(old_dataset(release, "plain").parent):
        try:
            reader = LanceFileReader.open_path(path)
        except UnsupportedFeatureError:
            with pytest.raises(OSError, match="v1 metadata"):
                PylanceFileReader(str(path))
            continue
        found = reader.scan().read_all()
        if reader.num_columns > 0:  # pylance reads no file without columns
            wanted = PylanceFileReader(str(path)).read_all().to_table()
            assert found.schema.types == wanted.schema.types
            assert str(found.to_pydict()) == str(wanted.to_pydict())  # NaN equals NaN as text
        num_equal += 1
    assert num_equal >= FEWEST_FILES[release]
