"""Vector queries whose columns are computed, some of them of ``_distance``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError, TypeMismatchError, UnknownColumnError
from lance_core.query.request import NamedExpression, VectorQuery

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

NUM_ROWS = 300
VECTORS: NDArray[np.float32] = np.random.default_rng(3).standard_normal((NUM_ROWS, 8), np.float32)
QUERY = VECTORS[7] + np.float32(0.1)
COMPUTED = {"twice": "price * 2.0", "name": "upper(kind)", "id": "id", "known": "price IS NOT NULL"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("computed") / "t.lance"
    prices = [None if row % 5 == 0 else row / 4 for row in range(NUM_ROWS)]
    table = pa.table(
        {
            "id": range(NUM_ROWS),
            "price": pa.array(prices, pa.float64()),
            "kind": [f"kind {row % 3}" for row in range(NUM_ROWS)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 8),
        }
    )
    lance.write_dataset(table, str(place), max_rows_per_file=100)
    return place


@pytest.fixture
def ours(path: Path) -> lance_core.Dataset:
    return lance_core.open_dataset(str(path))


def test_computed_columns_are_those_of_pylance(ours: lance_core.Dataset, path: Path) -> None:
    nearest: dict[str, Any] = {"column": "v", "q": QUERY, "k": 20}
    theirs = lance.dataset(str(path)).to_table(
        columns={**COMPUTED, "_distance": "_distance"}, nearest=nearest
    )
    found = ours.search(QUERY, 20, columns=COMPUTED)
    assert found.schema.names == [*COMPUTED, "_distance"]
    assert found.select(list(COMPUTED)).to_pylist() == theirs.select(list(COMPUTED)).to_pylist()
    np.testing.assert_allclose(found["_distance"], theirs["_distance"], rtol=1e-5)


def test_expressions_may_use_the_distance(ours: lance_core.Dataset) -> None:
    found = ours.search(QUERY, 5, columns={"near": "1.0 / (1.0 + _distance)"}, with_row_id=True)
    assert found.schema.names == ["near", "_distance", "_rowid"]
    distances = found["_distance"].to_numpy().astype(np.float64)
    np.testing.assert_allclose(found["near"], 1 / (1 + distances), rtol=1e-6)


def test_the_distance_may_have_another_name(ours: lance_core.Dataset) -> None:
    found = ours.search(QUERY, 5, columns={"_distance": "_distance * 2.0", "d": "_distance"})
    assert found.schema.names == ["_distance", "d"]
    np.testing.assert_allclose(found["_distance"], 2 * found["d"].to_numpy(), rtol=1e-6)


def test_batches_and_parameters_go_with_computed_columns(ours: lance_core.Dataset) -> None:
    columns: Any = (NamedExpression("more", "price + $add"), "id")
    query = VectorQuery(VECTORS[:2], k=3, columns=columns, params={"add": 1.5}, batched=True)
    found = ours.run(query).table
    assert found.schema.names == ["query_index", "more", "id", "_distance"]
    assert found["query_index"].to_pylist() == [0, 0, 0, 1, 1, 1]
    stored = ours.take(found["id"].to_numpy(), columns=["price"])["price"].to_pylist()
    assert found["more"].to_pylist() == [None if p is None else p + 1.5 for p in stored]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"a": "nope + 1"}, UnknownColumnError),
        ({"a": "price +"}, InvalidRequestError),
        ({"a": "kind + 1"}, TypeMismatchError),
        ({"a": "price + $x"}, InvalidRequestError),
    ],
)
def test_what_cannot_be_computed_is_refused(
    ours: lance_core.Dataset, columns: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ours.search(QUERY, 5, columns=columns)
