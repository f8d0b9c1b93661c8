"""Inverted indices with bytes changed or cut hold tokens, or give an error of ours."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lance_core.encodings.version import FileVersion
from lance_core.errors import LanceError
from lance_core.index.segment_files import SegmentFiles
from lance_core.index.text.writers.segment import write_texts
from lance_core.index.text.writers.stored_texts import StoredTexts, recipe_of_segments
from lance_core.io.memory_store import MemoryStore
from lance_core.operations.verify_words import check_words
from tests.damage import damaged
from tests.text_indices import held_by_all, open_text_segments, texts, write_indexed

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.index.text.segment import TextSegment
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
    taken_over(whole[0])
    for seed in range(SEEDS):
        name = files[seed % len(files)]
        changed, how = damaged(content[name], np.random.default_rng(seed))
        try:
            with suppress(LanceError):
                segments = open_text_segments(_stored({**content, name: changed}), index)
                with suppress(LanceError, AssertionError):
                    held_by_all(segments)
                with suppress(LanceError):
                    taken_over(segments[0])
                check_words(segments[0])
        except Exception as error:
            raise AssertionError(f"seed {seed}, {name}: {how}") from error


def taken_over(segment: TextSegment) -> None:
    """Write a segment with the documents of one."""
    files = SegmentFiles(MemoryStore(), "x", FileVersion.V2_2)
    stored = StoredTexts(segment, lambda names: (names, np.ones(len(names), np.bool_)))
    write_texts(recipe_of_segments([segment]), [stored], (), files, 1 << 20)


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
