"""Random predicates on random rows: ours hold for the rows that pylance's filters find."""

from __future__ import annotations

import math
import tempfile
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.expr.filter import parse_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

NUMBERS = [None, -2, -1, 0, 1, 2, 3]
TEXTS = [None, "", "a", "b", "it's"]
TRUTHS = [None, True, False]
NUM_ROWS = len(NUMBERS) * len(TEXTS) * len(TRUTHS)

numbers = st.integers(-3, 4).map(str)
texts = st.sampled_from(["''", "'a'", "'aa'", "'it''s'", "'z'"])
operators = st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="])
negations = st.sampled_from(["", "NOT "])
typed = st.sampled_from([("i", numbers), ("f", numbers), ("s", texts), ("`a b`", texts)])
comparisons = typed.flatmap(
    lambda each: st.tuples(st.just(each[0]), operators, each[1] | st.just("NULL")).map(" ".join)
)
memberships = typed.flatmap(
    lambda each: st.builds(
        "{} {}IN ({})".format,
        st.just(each[0]),
        negations,
        # no NULL: "i NOT IN (NULL) AND i IN (0)" holds for 0 in pylance 14.0.2
        st.lists(each[1], min_size=1, max_size=3).map(", ".join),
    )
)
ranges = typed.flatmap(
    lambda each: st.builds(
        "{} {}BETWEEN {} AND {}".format, st.just(each[0]), negations, each[1], each[1]
    )
)
nulls = st.builds("{} IS {}NULL".format, st.sampled_from(["i", "s", "b"]), negations)
terms = comparisons | memberships | ranges | nulls | st.sampled_from(["b", "true", "false"])
predicates = st.recursive(
    terms,
    lambda inner: (
        st.builds("{} AND {}".format, inner, inner)
        | st.builds("{} OR {}".format, inner, inner)
        | st.builds("({})".format, inner)
        | st.builds("NOT ({})".format, inner)
    ),
    max_leaves=8,
)


def rows() -> pa.Table:
    every = [(n, text, truth) for n in NUMBERS for text in TEXTS for truth in TRUTHS]
    return pa.table(
        {
            "row": range(NUM_ROWS),
            "i": pa.array([n for n, _, _ in every], pa.int32()),
            "f": pa.array([n for n, _, _ in every], pa.float64()),
            "s": pa.array([text for _, text, _ in every], pa.string()),
            "a b": pa.array([text for _, text, _ in every], pa.string()).dictionary_encode(),
            "b": pa.array([truth for _, _, truth in every], pa.bool_()),
        }
    )


@pytest.fixture(scope="module")
def dataset() -> Iterator[lance.LanceDataset]:
    with tempfile.TemporaryDirectory() as folder:
        yield lance.write_dataset(rows(), folder, data_storage_version="2.2")


@settings(max_examples=settings().max_examples * 4)
@given(predicate=predicates)
def test_a_predicate_holds_for_the_rows_that_pylance_finds(
    dataset: lance.LanceDataset, predicate: str
) -> None:
    found = set(dataset.to_table(columns=["row"], filter=predicate)["row"].to_pylist())
    batch = rows().to_batches()[0]
    holds = parse_filter(predicate, batch.schema).holds(batch).to_pylist()
    judged = set(range(NUM_ROWS))
    if " OR " in predicate or "NOT (" in predicate:
        # "f != 0 OR f NOT IN (1)" holds for nulls too in pylance 14.0.2, which joins the two
        judged = {n for n, row in enumerate(batch.to_pylist()) if None not in row.values()}
    assert {row for row in judged if holds[row]} == found & judged, predicate


FLOATS = [
    None,
    -math.inf,
    -5.5,
    -1.0,
    -0.0,
    0.0,
    0.25,
    1.0,
    5.0,
    65504.0,
    math.inf,
    math.nan,
    -math.nan,
]
WIDTHS = [pa.float16(), pa.float32(), pa.float64()]
# All are exact in float16: pylance rounds others to the column's type, but not below NOT.
float_literals = st.sampled_from(
    ["0", "-0.0", "0.0", "0.25", "1", "-1", "5", "5.0", "-5.5", "1e400", "-1e400", "65504"]
)
float_columns = st.sampled_from([f"f{width.bit_width}" for width in WIDTHS])
float_predicates = st.one_of(
    st.builds("{}{} {} {}".format, negations, float_columns, operators, float_literals),
    st.builds(
        "{} {}IN ({})".format,
        float_columns,
        negations,
        st.lists(float_literals, min_size=1, max_size=5).map(", ".join),
    ),
    st.builds(
        "{} {}BETWEEN {} AND {}".format, float_columns, negations, float_literals, float_literals
    ),
)


def float_rows() -> pa.Table:
    columns = {
        f"f{width.bit_width}": pa.array(
            np.array([0.0 if each is None else each for each in FLOATS], width.to_pandas_dtype()),
            mask=np.array([each is None for each in FLOATS]),
        )
        for width in WIDTHS
    }
    return pa.table({"row": range(len(FLOATS)), **columns})


@pytest.fixture(scope="module")
def floats() -> Iterator[lance.LanceDataset]:
    with tempfile.TemporaryDirectory() as folder:
        yield lance.write_dataset(float_rows(), folder, data_storage_version="2.2")


@settings(max_examples=settings().max_examples * 4)
@given(predicate=float_predicates)
def test_floats_are_ordered_as_pylance_orders_them(
    floats: lance.LanceDataset, predicate: str
) -> None:
    found = floats.to_table(columns=["row"], filter=predicate)["row"].to_pylist()
    batch = float_rows().to_batches()[0]
    holds = parse_filter(predicate, batch.schema).holds(batch).to_pylist()
    assert [row for row, value in enumerate(holds) if value] == sorted(found), predicate
