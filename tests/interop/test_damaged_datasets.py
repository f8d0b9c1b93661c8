"""Damaged files of a dataset give a typed error or the right answer, never anything else."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError, LanceError
from lance_core.index.registry import UnusableSegmentError
from lance_core.io.file_maps import LOOK_AGAIN_MS
from lance_core.query.residency import NotResidentError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

DIMENSION = 16
FLIPS_PER_FILE = 60
INTERNAL = (NotResidentError, UnusableSegmentError)


@pytest.fixture(
    scope="module",
    params=[("IVF_PQ", False), ("IVF_FLAT", False), ("IVF_FLAT", True)],
    ids=["IVF_PQ", "IVF_FLAT", "IVF_FLAT with stable row ids"],
)
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    index_type, stable_row_ids = request.param
    folder = tmp_path_factory.mktemp("whole") / "t.lance"
    generator = np.random.default_rng(1)
    vectors = generator.standard_normal((700, DIMENSION)).astype(np.float32)
    table = pa.table(
        {
            "id": pa.array(np.arange(700)),
            "text": [f"row {i % 90}" for i in range(700)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    dataset = lance.write_dataset(
        table.slice(0, 600), str(folder), enable_stable_row_ids=stable_row_ids
    )
    dataset.create_index(
        "vec",
        index_type,
        num_partitions=4,
        num_sub_vectors=4 if index_type == "IVF_PQ" else None,
    )
    dataset.insert(table.slice(600))
    dataset.delete("id % 7 = 2")
    return folder


def files_of(root: Path) -> list[Path]:
    newest = min((root / "_versions").glob("*.manifest"), key=lambda path: path.name)
    others = [
        path
        for folder in ("data", "_indices", "_deletions")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file()
    ]
    return [newest, *others]


def ask(root: Path) -> None:
    """Run every kind of read; errors of this library are fine, all others are not."""
    try:
        dataset = lance_core.open_dataset(str(root))
        dataset.count_rows()
        dataset.search(np.ones(DIMENSION, np.float32), 5, nprobes=2, refine_factor=3)
        dataset.search(np.ones(DIMENSION, np.float32), 5, use_index=False, columns=["id"])
        dataset.scan().read_all()
        dataset.scan(
            ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        ).read_all()
        dataset.take([0, 3, 5])
    except INTERNAL as error:
        pytest.fail(f"an internal signal came out: {error!r}")
    except LanceError:
        pass


def read_everything(root: Path) -> None:
    dataset = lance_core.open_dataset(str(root))
    dataset.search(np.ones(DIMENSION, np.float32), 5, nprobes=4, refine_factor=9)
    dataset.scan().read_all()


def search_warm_and_cold(dataset: lance_core.Dataset) -> None:
    query = np.ones(DIMENSION, np.float32)
    dataset.search(query, 700, refine_factor=3)
    dataset.session.cache.clear()
    dataset.search(query, 700, refine_factor=3)


def copy_with(root: Path, folder: Path, damaged: Path, content: bytes) -> Path:
    """Copy the dataset with one file replaced."""
    copied = folder / "t.lance"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(root, copied)
    (copied / damaged.relative_to(root)).write_bytes(content)
    return copied


def test_flipped_bits_never_raise_anything_but_a_typed_error(root: Path, tmp_path: Path):
    generator = np.random.default_rng(11)
    for path in files_of(root):
        whole = path.read_bytes()
        for _ in range(FLIPS_PER_FILE):
            flipped = bytearray(whole)
            for place in generator.integers(0, len(whole), generator.integers(1, 4)):
                flipped[place] ^= 1 << int(generator.integers(0, 8))
            ask(copy_with(root, tmp_path, path, bytes(flipped)))


def test_a_truncated_file_is_named_as_corrupt(root: Path, tmp_path: Path):
    for path in files_of(root):
        whole = path.read_bytes()
        for kept in (0, 1, 15, len(whole) // 2, len(whole) - 1):
            copied = copy_with(root, tmp_path, path, whole[:kept])
            with pytest.raises(CorruptFileError) as caught:
                read_everything(copied)
            assert caught.value.path == str(path.relative_to(root))


def test_a_missing_file_is_named_as_corrupt(root: Path, tmp_path: Path):
    for path in files_of(root)[1:]:
        copied = copy_with(root, tmp_path, path, b"")
        (copied / path.relative_to(root)).unlink()
        with pytest.raises(CorruptFileError) as caught:
            read_everything(copied)
        assert caught.value.path == str(path.relative_to(root))


def test_a_file_that_shrinks_while_it_is_mapped_is_named_as_corrupt(root: Path, tmp_path: Path):
    copied = copy_with(root, tmp_path, root / "data" / "spare", b"")
    dataset = lance_core.open_dataset(str(copied))
    search_warm_and_cold(dataset)
    for path in [*(copied / "data").glob("*.lance"), *(copied / "_indices").rglob("aux*")]:
        whole = path.read_bytes()
        with path.open("r+b") as file:
            file.truncate(100)
        time.sleep(2 * LOOK_AGAIN_MS / 1000)  # until then queries take the file for whole
        with pytest.raises(CorruptFileError):
            search_warm_and_cold(dataset)
        path.write_bytes(whole)
