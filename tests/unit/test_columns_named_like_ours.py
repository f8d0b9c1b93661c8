"""Tables whose own columns bear the names of pseudo columns keep their rows apart all the same.

New tables cannot have such columns, but those of older writers may.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.operations import given_rows
from lance_core.query.session import Session

NUM_ROWS = 12
NAMES = ("_rowaddr", "_rowid", "_rowoffset")


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.setattr(given_rows, "RESERVED_NAMES", frozenset())
    ids = np.arange(NUM_ROWS)
    turned = pa.array((ids + 1) % NUM_ROWS, pa.uint64())  # names another row of the table
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(ids, 2), pa.float32()), 2)
    table = pa.table({"id": ids, "x": ids, **dict.fromkeys(NAMES, turned), "vec": vectors})
    return lance_core.write_dataset(tmp_path / "t.lance", table, max_rows_per_file=5)


def ids(dataset, column="id"):
    return dataset.scan([column]).read_all()[column].to_pylist()


def test_deletes_remove_the_rows_that_fulfil_the_predicate(dataset):
    changed = dataset.delete("id = 3").delete("_rowaddr = 8")
    assert ids(changed) == [each for each in range(NUM_ROWS) if each not in {3, 7}]


def test_updates_change_the_rows_that_fulfil_the_predicate(dataset):
    changed = dataset.update({"x": 100}, "id = 3").scan(["id", "x"]).read_all()
    assert [(i, x) for i, x in zip(*changed.to_pydict().values(), strict=True) if i != x] == [
        (3, 100)
    ]


def test_merges_find_the_rows_with_their_keys(dataset):
    rows = dataset.scan().read_all().slice(3, 1).set_column(1, "x", pa.array([100], pa.int64()))
    changed = dataset.merge_insert(rows, "id").scan(["id", "x"]).read_all()
    assert [(i, x) for i, x in zip(*changed.to_pydict().values(), strict=True) if i != x] == [
        (3, 100)
    ]
    assert changed.num_rows == NUM_ROWS


@pytest.mark.parametrize("few_rows", [0, 100])
@pytest.mark.parametrize("name", NAMES)
def test_filters_mean_the_columns_of_the_table(dataset, name, few_rows):
    opened = lance_core.open_dataset(dataset.uri, session=Session(few_rows=few_rows))
    found = opened.search([0, 0], 3, filter=f"{name} > 5", columns=["id"])
    assert found["id"].to_pylist() == [5, 6, 7]
