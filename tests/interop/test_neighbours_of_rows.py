"""Searching by the stored vector of a row."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.query.request import VectorQuery

pytestmark = pytest.mark.interop

DIMENSION, NUM_ROWS, NULL, NOT_FINITE, DELETED = 8, 700, 11, 12, 13


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def opened(request, tmp_path_factory):
    generator = np.random.default_rng(6)
    vectors = generator.standard_normal((NUM_ROWS, DIMENSION)).astype(np.float32)
    vectors[NOT_FINITE, 0] = np.nan
    lists = [None if i == NULL else row.tolist() for i, row in enumerate(vectors)]
    folder = str(tmp_path_factory.mktemp("neighbours") / "t.lance")
    dataset = lance.write_dataset(
        pa.table(
            {"id": np.arange(NUM_ROWS), "vec": pa.array(lists, pa.list_(pa.float32(), DIMENSION))}
        ),
        folder,
        max_rows_per_file=300,
        enable_stable_row_ids=request.param,
    )
    dataset.create_index("vec", "IVF_PQ", metric="l2", num_partitions=4, num_sub_vectors=4)
    dataset.delete(f"id = {DELETED}")
    if request.param:  # ids stay when rows move
        dataset.optimize.compact_files(target_rows_per_fragment=10_000)
    return lance_core.open_dataset(folder), vectors


def row_id(dataset, number):
    rows = dataset.scan(["id"], with_row_id=True).read_all()
    return rows["_rowid"][rows["id"].to_pylist().index(number)].as_py()


@pytest.mark.parametrize("options", [{"use_index": False}, {"refine_factor": 20}, {"offset": 3}])
@pytest.mark.parametrize("number", [0, 299, 300, 699])
def test_a_row_is_left_out_of_its_own_neighbours(opened, number, options):
    dataset, vectors = opened
    found = dataset.search(row_ids=row_id(dataset, number), k=9, columns=["id"], **options)
    by_vector = dataset.search(
        vectors[number],
        k=9 + 1 + options.get("offset", 0),
        columns=["id"],
        **{**options, "offset": 0},
    )
    others = by_vector.filter(by_vector["id"].to_numpy() != number)
    assert found.equals(others.slice(options.get("offset", 0), 9))
    assert found.num_rows == 9


def test_several_rows_are_answered_at_once(opened):
    dataset, _ = opened
    rows = [row_id(dataset, number) for number in (5, 350, 5)]
    batch = dataset.search(row_ids=rows, k=4, columns=["id"])
    assert batch["query_index"].to_pylist() == [0] * 4 + [1] * 4 + [2] * 4
    for number, each in enumerate(rows):
        alone = dataset.search(row_ids=each, k=4, columns=["id"])
        assert batch["id"].to_pylist()[4 * number : 4 * number + 4] == alone["id"].to_pylist()


def test_a_filter_holds_for_neighbours_too(opened):
    dataset, _ = opened
    found = dataset.search(row_ids=row_id(dataset, 40), k=20, filter="id > 50", columns=["id"])
    assert min(found["id"].to_pylist()) > 50
    found = dataset.search(row_ids=row_id(dataset, 40), k=20, filter="id < 50", columns=["id"])
    assert found.num_rows == 20
    assert 40 not in found["id"].to_pylist()


@pytest.mark.parametrize(
    ("number", "said"), [(NULL, "has no vector"), (NOT_FINITE, "has no vector of finite numbers")]
)
def test_a_row_without_a_vector_has_no_neighbours(opened, number, said):
    dataset, _ = opened
    with pytest.raises(InvalidRequestError, match=said):
        dataset.search(row_ids=row_id(dataset, number))


@pytest.mark.parametrize("row", [DELETED, 10**6, 99 << 32, 2**64 - 1])
def test_a_row_that_is_not_there_is_refused(opened, row):
    with pytest.raises(InvalidRequestError, match=r"deleted|no row|no fragment|is asked for"):
        opened[0].search(row_ids=row)


def test_a_column_must_be_named_where_there_are_several(tmp_path):
    table = pa.table({"a": pa.array([[1.0]], pa.list_(pa.float32(), 1))})
    table = table.append_column("b", table["a"])
    dataset = lance_core.write_dataset(tmp_path / "t.lance", table)
    with pytest.raises(InvalidRequestError, match="several vector columns; name one: a, b"):
        dataset.search(row_ids=0)
    assert dataset.search(row_ids=0, column="a").num_rows == 0


def test_neighbours_are_found_by_a_run_that_may_not_wait(opened):
    dataset, _ = opened
    request = VectorQuery(vectors=None, row_ids=(row_id(dataset, 7),), k=5, columns=("id",))
    waited = dataset.run(request).table
    assert dataset.run(request, resident_only=True).table.equals(waited)
