"""The face of the library: what newcomers type, right and wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

QUERY = [0.0, 1.0, 2.0, 3.0]


def vectors(count: int, dimension: int, value_type: pa.DataType) -> pa.Array:
    values = pa.array(np.arange(count * dimension) % 100).cast(value_type)
    return pa.FixedSizeListArray.from_arrays(values, dimension)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "id": range(20),
            "vec": vectors(20, 4, pa.float32()),
            "bits": pa.FixedSizeListArray.from_arrays(pa.array([0] * 80, pa.int8()), 4),
            "a b": range(20),
            "st": pa.StructArray.from_arrays(
                [pa.array(range(20)), pa.array(range(20))], ["x", "t.dot"]
            ),
            "query_index": range(20),
        }
    )
    lance.write_dataset(table, str(tmp_path / "t.lance"))
    return tmp_path / "t.lance"


@pytest.fixture
def dataset(root: Path) -> lance_core.Dataset:
    return lance_core.open_dataset(root)


def test_a_path_object_opens_as_its_text_does(root: Path):
    assert lance_core.open_dataset(root).uri == lance_core.open_dataset(str(root)).uri


@pytest.mark.parametrize("uri", [None, 5, b"x"])
def test_what_is_no_place_is_refused(uri: Any):
    with pytest.raises(InvalidRequestError, match="give a path"):
        lance_core.open_dataset(uri)


@pytest.mark.parametrize(
    "asked",
    [
        {"k": 1.5},
        {"k": "3"},
        {"k": True},
        {"nprobes": 1.5},
        {"columns": "id"},
        {"columns": [1]},
        {"column": 1},
        {"lower_bound": "a"},
        {"offset": None, "k": 0},
    ],
)
def test_parameters_of_a_wrong_type_are_refused_by_name(
    dataset: lance_core.Dataset, asked: dict[str, Any]
):
    with pytest.raises(InvalidRequestError, match=next(iter(asked))[:4] + "|k is 0"):
        dataset.search(QUERY, **asked)


@pytest.mark.parametrize("vector", ["abc", None, [10**400], [[[1.0]]], [1.0, None]])
def test_what_is_no_vector_is_refused(dataset: lance_core.Dataset, vector: Any):
    with pytest.raises(InvalidRequestError):
        dataset.search(vector, column="vec")


@pytest.mark.parametrize("indices", [None, 5, ["a"], [[1, 2]], [1.5], [True, False], [2**70], [-1]])
def test_what_is_no_list_of_rows_is_refused(dataset: lance_core.Dataset, indices: Any):
    with pytest.raises(InvalidRequestError):
        dataset.take(indices)


def test_no_rows_are_taken_for_no_indices(dataset: lance_core.Dataset):
    taken = dataset.take([], ["id"])
    assert (taken.num_rows, taken.schema.names) == (0, ["id"])


def test_a_column_that_cannot_be_searched_does_not_make_a_query_ambiguous(
    dataset: lance_core.Dataset,
):
    assert dataset.search(QUERY, 1, columns=["id"])["id"].to_pylist() == [0]


def test_a_vector_that_fits_no_column_is_refused_with_those_there_are(dataset: lance_core.Dataset):
    with pytest.raises(TypeMismatchError, match=r"vector columns are: vec \(4\)$"):
        dataset.search([1.0, 2.0])


@pytest.mark.parametrize(
    ("path", "name"), [("a b", "a b"), ("`a b`", "a b"), ("st.`t.dot`", "t.dot"), ("st.x", "x")]
)
def test_names_with_dots_are_reached_by_backticks(
    dataset: lance_core.Dataset, path: str, name: str
):
    assert dataset.scan([path]).read_all()[path].to_pylist() == list(range(20))
    assert dataset.snapshot.schema.field(path).name == name


@pytest.mark.parametrize("path", ["", ".", "st.", ".x", "`st", "st`x`", "``"])
def test_a_path_that_cannot_be_split_is_refused(dataset: lance_core.Dataset, path: str):
    with pytest.raises(InvalidRequestError):
        dataset.scan([path])


def test_an_unknown_part_is_named(dataset: lance_core.Dataset):
    with pytest.raises(UnknownColumnError, match=r"st\.y"):
        dataset.scan(["st.y"])


def test_a_column_named_as_the_answer_needs_it_is_not_mixed_up(dataset: lance_core.Dataset):
    batch = [QUERY, QUERY]
    with pytest.raises(InvalidRequestError, match='column "query_index" of its own'):
        dataset.search(batch, 2)
    found = dataset.search(batch, 2, columns=["id"])
    assert found["query_index"].to_pylist() == [0, 0, 1, 1]
    assert "query_index" in dataset.search(QUERY, 2).schema.names


def test_a_stored_distance_is_not_mixed_up_with_the_computed_one(tmp_path: Path):
    table = pa.table({"_distance": range(5), "vec": vectors(5, 4, pa.float32())})
    lance.write_dataset(table, str(tmp_path / "d.lance"))
    dataset = lance_core.open_dataset(tmp_path / "d.lance")
    with pytest.raises(InvalidRequestError, match='column "_distance" of its own'):
        dataset.search(QUERY, 2)
    assert dataset.search(QUERY, 2, columns=["vec"]).num_rows == 2
