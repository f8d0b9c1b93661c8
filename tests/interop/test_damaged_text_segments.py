"""Inverted indices with bytes changed or cut hold tokens, or give an error of ours."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lance_core.errors import LanceError
from lance_core.io.memory_store import MemoryStore
from tests.damage import damaged
from tests.text_indices import held_by_all, open_text_segments, texts, write_indexed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import OldDataset

pytestmark = pytest.mark.interop

SEEDS = 30
FORMATS: dict[str, dict[str, Any]] = {
    "1": {"format_version": "1", "with_position": True},
    "2": {"format_version": "2", "with_position": True},
    "3": {"block_size": 256, "with_position": True},
}


def check_damage(path: Path, index: str) -> None:
    """Damage one file after another of a dataset's index, which must hold something whole."""
    content = {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.relative_to(path).parts[0] != "data"
    }
    folder = next(name.rpartition("/")[0] for name in content if name.endswith("invert.lance"))
    files = sorted(name for name in content if name.startswith(folder))
    whole = open_text_segments(_stored(content), index)
    assert len(held_by_all(whole)) > 1
    for seed in range(SEEDS):
        name = files[seed % len(files)]
        changed, how = damaged(content[name], np.random.default_rng(seed))
        try:
            with suppress(LanceError, AssertionError):
                held_by_all(open_text_segments(_stored({**content, name: changed}), index))
        except Exception as error:
            raise AssertionError(f"seed {seed}, {name}: {how}") from error


def _stored(content: dict[str, bytes]) -> MemoryStore:
    store = MemoryStore()
    for name, data in content.items():
        store.put(name, data)
    return store


@pytest.mark.parametrize("form", FORMATS)
def test_damage_to_files_of_now_is_told_or_does_not_matter(form: str, tmp_path: Path) -> None:
    path = tmp_path / "d.lance"
    write_indexed(path, texts(400), **FORMATS[form])
    check_damage(path, "t_idx")


@pytest.mark.parametrize("release", ["0.20.0", "1.0.4"])
def test_damage_to_files_of_old_releases_is_told_or_does_not_matter(
    old_dataset: OldDataset, release: str
) -> None:
    check_damage(old_dataset(release, "scalar"), "text_idx")
