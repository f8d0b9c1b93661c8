"""Shallow clones and branches: files of one version below several roots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset
from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

VECTORS = np.random.default_rng(3).standard_normal((700, 16)).astype(np.float32)


def rows(first: int, last: int) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[first:last].ravel()), 16)
    return pa.table({"id": np.arange(first, last), "vec": vectors})


@pytest.fixture
def clone(tmp_path: Path) -> str:
    """A clone with inherited and own data files, deletion files and index segments."""
    source = lance.write_dataset(rows(0, 600), tmp_path / "t.lance", max_rows_per_file=300)
    source.create_index("vec", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    source.delete("id % 10 = 3 AND id < 300")
    uri = str(tmp_path / "clone.lance")
    clone = source.shallow_clone(uri, source.version)
    clone.delete("id % 10 = 4 AND id >= 300")
    lance.write_dataset(rows(600, 700), uri, mode="append")
    return uri


def live() -> list[int]:
    return [
        i
        for i in range(700)
        if not (i < 300 and i % 10 == 3) and not (300 <= i < 600 and i % 10 == 4)
    ]


def test_a_clone_reads_its_own_and_inherited_files(clone: str) -> None:
    ours = open_dataset(clone)
    assert ours.count_rows() == len(live())
    table = ours.scan(with_row_id=True).read_all()
    assert table.equals(lance.dataset(clone).to_table(with_row_id=True))
    assert table["id"].to_pylist() == live()
    assert ours.take([0, 300, 600], ["id"])["id"].to_pylist() == [live()[i] for i in (0, 300, 600)]


@pytest.mark.parametrize("refine", [None, 5])
def test_an_inherited_index_is_searched(clone: str, refine: int | None) -> None:
    ours = open_dataset(clone)
    found = ours.search(VECTORS[42], k=1000, nprobes=2, columns=["id"], refine_factor=refine)
    assert sorted(found["id"].to_pylist()) == live()
    (segment,) = ours.snapshot.indices
    assert segment.base_id == 0
    indexed = ours.search(VECTORS[42], k=1000, nprobes=2, columns=["id"], fast_search=True)
    assert sorted(indexed["id"].to_pylist()) == [i for i in live() if i < 600]


def test_exact_search_maps_files_of_the_other_root(clone: str) -> None:
    found = open_dataset(clone).search(VECTORS[650], k=3, use_index=False, columns=["id"])
    assert found["id"].to_pylist()[0] == 650


def test_a_caller_may_refuse_other_places(clone: str) -> None:
    asked: list[str] = []

    def refuse(path: str) -> None:
        asked.append(path)
        raise InvalidRequestError("no")

    ours = open_dataset(clone, check_base=refuse)
    with pytest.raises(InvalidRequestError, match="no"):
        ours.scan().read_all()
    assert asked == [clone.replace("clone.lance", "t.lance")]
