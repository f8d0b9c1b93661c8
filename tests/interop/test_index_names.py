"""Names of indices, and models that callers give: as pylance takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError, UnknownColumnError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION = 300, 16
PATHS = ("id", "a b", "`a b`", "e-f", "point.x", "`point`.`x`", "point.`y z`", "point.`a.b`")


def rows() -> pa.Table:
    numbers = range(NUM_ROWS)
    point = [{"x": n, "y z": n, "a.b": n} for n in numbers]
    vectors = np.random.default_rng(4).random((NUM_ROWS, DIMENSION), dtype=np.float32)
    return pa.table(
        {
            **dict.fromkeys(("id", "a b", "e-f"), pa.array(numbers)),
            "point": point,
            "v": lists(vectors),
        }
    )


def lists(numbers: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), numbers.shape[-1])


def names(path: Path) -> list[str]:
    return [each.name for each in lance.dataset(str(path)).describe_indices()]


def test_an_index_is_called_as_pylance_calls_it_however_its_column_is_written(
    tmp_path: Path,
) -> None:
    for column in PATHS:
        theirs, ours = (tmp_path / f"{whose}{PATHS.index(column)}" for whose in ("t", "o"))
        for path in (theirs, ours):
            lance.write_dataset(rows(), str(path))
        lance.dataset(str(theirs)).create_scalar_index(column, "BTREE")
        lance_core.open_dataset(ours).create_index(column, "BTREE")
        assert names(ours) == names(theirs)
        lance_core.open_dataset(ours).create_index(column, "BITMAP")
        assert names(ours) == names(theirs)


def test_ways_to_write_a_column_lead_to_one_index_of_both_writers(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows(), str(path))
    lance.dataset(str(path)).create_scalar_index("`point`.`y z`", "BTREE")
    dataset = lance_core.open_dataset(path).create_index("point.`y z`", "BTREE")
    dataset = dataset.create_index("`point`.`y z`", "BITMAP")
    assert [each.name for each in dataset.list_indices()] == ["point.y z_idx"]
    for column, error in (("none", UnknownColumnError), ("_rowid", InvalidRequestError)):
        with pytest.raises(error, match=column):
            dataset.create_index(column, "BTREE")


@pytest.mark.parametrize("name", [" ", "\n", "a\tb", "..", "a/b", "é"])
def test_an_index_that_pylance_named_is_kept_up_whatever_its_name(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "t"
    lance.write_dataset(rows(), str(path)).create_scalar_index("id", "BTREE", name=name)
    lance.write_dataset(rows(), str(path), mode="append")
    dataset = lance_core.open_dataset(path).optimize_indices([name])
    assert dataset.index_statistics(name).num_indexed_rows == 2 * NUM_ROWS
    dataset = dataset.create_index("id", "BITMAP", name)
    assert [each.index_type for each in dataset.list_indices()] == ["BITMAP"]
    assert names(path) == [name]
    dataset.drop_index(name)
    assert names(path) == []


def test_centroids_and_codebooks_of_arrow_make_the_index_that_pylance_makes(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    centroids = lists(draw.random((3, DIMENSION), dtype=np.float32))
    codebook = lists(draw.random((2 * 256, DIMENSION // 2), dtype=np.float32))
    found = []
    for whose in ("theirs", "ours"):
        path = tmp_path / whose
        dataset = lance.write_dataset(rows(), str(path))
        maker: Any = dataset if whose == "theirs" else lance_core.open_dataset(path)
        parts = {"ivf_centroids": centroids, "pq_codebook": codebook}
        maker.create_index("v", "IVF_PQ", num_partitions=3, num_sub_vectors=2, **parts)
        nearest = {"column": "v", "q": np.full(DIMENSION, 0.5, np.float32), "k": 20, "nprobes": 3}
        found.append(lance.dataset(str(path)).to_table(columns=["id"], nearest=nearest))
    assert found[0]["id"] == found[1]["id"]
    np.testing.assert_allclose(found[0]["_distance"], found[1]["_distance"], rtol=1e-5)
