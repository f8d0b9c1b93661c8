"""Exact searches of tables whose index is damaged: all rows are there, so all are found."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

import lance_core
from lance_core.errors import CorruptFileError
from lance_core.io.file_maps import LOOK_AGAIN_MS
from tests.pylance_dataset import VECTORS, nearest, write_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

VECTOR = VECTORS[123]
EXPECTED = nearest(VECTOR.tolist(), 5)[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "whole.lance"
    write_dataset(folder)
    return folder


def ids(dataset: lance_core.Dataset, **options: Any) -> list[int]:
    found: list[int] = dataset.search(VECTOR, 5, columns=["id"], **options)["id"].to_pylist()
    return found


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-30])


def remove(file: Path) -> None:
    file.unlink()


def garble(file: Path) -> None:
    file.write_bytes(b"\xff" * file.stat().st_size)


@pytest.mark.parametrize("damage", [cut, remove, garble])
@pytest.mark.parametrize("name", ["index.idx", "auxiliary.idx"])
def test_a_damaged_index_fails_only_queries_that_use_it(
    whole: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "t.lance"
    shutil.copytree(whole, folder)
    (file,) = folder.glob(f"_indices/*/{name}")
    kept = file.read_bytes()
    damage(file)
    dataset = lance_core.open_dataset(str(folder))
    for _ in range(2):
        with pytest.raises(CorruptFileError):
            ids(dataset)
        assert ids(dataset, use_index=False) == EXPECTED
        assert ids(dataset, use_index=False, filter="id >= 0") == EXPECTED
    plan = dataset.explain(lance_core.VectorQuery(vectors=VECTOR[None], use_index=False))
    assert "a file of it is damaged or missing" in plan
    file.write_bytes(kept)
    time.sleep(2 * LOOK_AGAIN_MS / 1000)  # what was damaged is looked at again
    assert ids(dataset, nprobes=50, refine_factor=20) == EXPECTED
