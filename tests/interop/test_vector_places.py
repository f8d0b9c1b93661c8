"""Vector columns inside structs, with nulls, and in tables without rows or fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core import VectorQuery
from lance_core.errors import InvalidRequestError
from tests.neighbour_checks import assert_same_neighbours

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION = 600, 8
VERSIONS = ["2.0", "2.1", "2.2"]


def draw(num_rows: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((num_rows, DIMENSION), np.float32)


def nested_table(num_rows: int, seed: int, first: int = 0) -> pa.Table:
    """Return rows whose struct is null, or the vector in it, or neither."""
    items = pa.array(draw(num_rows, seed).ravel())
    place = np.arange(num_rows)
    vectors = pa.FixedSizeListArray.from_arrays(items, DIMENSION, mask=pa.array(place % 13 == 5))
    inner = pa.StructArray.from_arrays(
        [vectors, pa.array(place)], ["v", "x"], mask=pa.array(place % 11 == 4)
    )
    return pa.table({"id": place + first, "s": inner})


def assert_same_answers(root: Path, column: str, **asked: Any) -> None:
    theirs, ours = lance.dataset(root), lance_core.open_dataset(root)
    for query in draw(5, seed=9):
        nearest = {"column": column, "q": query, "k": 20, **asked}
        expected = theirs.to_table(columns=["id", "_distance"], nearest=nearest)
        found = ours.search(query, 20, column=column, columns=["id"], **asked)
        assert_same_neighbours(found, expected, scale=float(query @ query))


@pytest.mark.parametrize("version", ["2.1", "2.2"])  # 2.0 knows no null structs
@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_a_vector_column_may_lie_in_a_struct(tmp_path: Path, version: Any, metric: str) -> None:
    path = tmp_path / "t.lance"
    dataset = lance.write_dataset(
        nested_table(NUM_ROWS, 1), path, max_rows_per_file=400, data_storage_version=version
    )
    assert_same_answers(path, "s.v", metric=metric)
    dataset.create_index("s.v", "IVF_FLAT", metric=metric, num_partitions=4)
    for asked in ({"nprobes": 2}, {"nprobes": 2, "refine_factor": 3}, {"use_index": False}):
        assert_same_answers(path, "s.v", metric=metric, **asked)
    lance.write_dataset(nested_table(50, 2, NUM_ROWS), path, mode="append")
    lance.dataset(path).delete("id % 7 = 0")
    assert_same_answers(path, "s.v", metric=metric, nprobes=2)
    result = lance_core.open_dataset(path).run(VectorQuery(draw(1, 3), column="s.v"))
    assert result.stats.plan == "ann"


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_without_a_vector_are_never_found(tmp_path: Path, version: Any) -> None:
    path = tmp_path / "t.lance"
    items = pa.array(draw(NUM_ROWS, 1).ravel())
    is_null = np.arange(NUM_ROWS) % 3 == 1
    column = pa.FixedSizeListArray.from_arrays(items, DIMENSION, mask=pa.array(is_null))
    dataset = lance.write_dataset(
        pa.table({"id": range(NUM_ROWS), "v": column}), path, data_storage_version=version
    )
    query = draw(1, 4)[0]
    for metric in ("l2", "cosine", "dot"):
        found = lance_core.open_dataset(path).search(query, 1_000, metric=metric, columns=["id"])
        assert sorted(found["id"].to_pylist()) == np.flatnonzero(~is_null).tolist()
    dataset.create_index("v", "IVF_FLAT", metric="l2", num_partitions=4)
    found = lance_core.open_dataset(path).search(query, 1_000, columns=["id"])
    assert sorted(found["id"].to_pylist()) == np.flatnonzero(~is_null).tolist()


SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "v": pa.list_(pa.float32(), DIMENSION),
        "b": pa.list_(pa.uint8(), DIMENSION),
        "w": pa.list_(pa.list_(pa.float32(), DIMENSION)),
        "s": pa.struct({"v": pa.list_(pa.float16(), DIMENSION)}),
    }
)


def empty_tables(path: Path) -> list[Path]:
    """Write a table without fragments, one with rows without vectors, one with deleted rows."""
    places = [path / name for name in ("none", "nulls", "gone")]
    lance.write_dataset(SCHEMA.empty_table(), places[0])
    nulls = pa.table({f.name: pa.nulls(5, f.type) for f in SCHEMA}, schema=SCHEMA)
    lance.write_dataset(nulls, places[1])
    lance.write_dataset(nulls, places[2])
    lance.dataset(places[2]).delete("true")
    return places


@pytest.mark.parametrize("column", ["v", "b", "w", "s.v"])
def test_tables_without_vectors_have_no_neighbours(tmp_path: Path, column: str) -> None:
    for path in empty_tables(tmp_path):
        dataset = lance_core.open_dataset(path)
        for is_fast in (False, True):
            found = dataset.search(
                np.ones(DIMENSION), column=column, columns=["id"], fast_search=is_fast
            )
            assert (found.num_rows, found.column_names) == (0, ["id", "_distance"])
        batch = dataset.search(np.ones((2, DIMENSION)), column=column, columns=["id"])
        assert batch.num_rows == 0


def test_a_column_that_is_added_later_is_searched_where_it_has_values(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(4)}), path)
    lance.dataset(path).add_columns(
        pa.schema({"v": SCHEMA.field("v").type, "w": SCHEMA.field("w").type})
    )
    dataset = lance_core.open_dataset(path)
    assert dataset.search(np.ones(DIMENSION), column="v").num_rows == 0
    assert dataset.search(np.ones(DIMENSION), column="w").num_rows == 0
    ones = [1.0] * DIMENSION
    rows = pa.table(
        {"id": [4], "v": [ones], "w": [[ones]]},
        schema=pa.schema([SCHEMA.field("id"), SCHEMA.field("v"), SCHEMA.field("w")]),
    )
    lance.write_dataset(rows, path, mode="append")
    dataset = lance_core.open_dataset(path)
    for column in ("v", "w"):
        found = dataset.search(ones, column=column, columns=["id"])
        assert (found["id"].to_pylist(), found["_distance"].to_pylist()) == ([4], [0.0])


def test_several_columns_of_a_dimension_have_to_be_named(tmp_path: Path) -> None:
    lance.write_dataset(SCHEMA.empty_table(), tmp_path / "t.lance")
    with pytest.raises(InvalidRequestError, match="have 8 dimensions; name one: v, b, w"):
        lance_core.open_dataset(tmp_path / "t.lance").search(np.ones(DIMENSION))
