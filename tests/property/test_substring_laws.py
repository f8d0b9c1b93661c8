from __future__ import annotations

import pyarrow as pa
from hypothesis import given, strategies as st

from lance_core.expr.substring import contains

texts = st.text("abé", max_size=6)
kinds = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])


@given(st.lists(st.none() | texts, max_size=20), texts, kinds, st.integers(0, 5))
def test_texts_that_contain_a_part_are_those_that_python_says(
    values: list[str | None], part: str, kind: pa.DataType, skipped: int
) -> None:
    array = pa.array(values, kind).slice(skipped)
    expected = [None if each is None else part in each for each in values[skipped:]]
    assert contains(array, part).to_pylist() == expected


@given(st.integers(0, 30), st.integers(2, 12))
def test_parts_are_found_where_pieces_of_the_data_meet(before: int, length: int) -> None:
    part = "xyzw"[:length] * 3
    values = ["a" * ((1 << 19) - before), part, "b" * 10 + part, part[:-1]]
    assert contains(pa.array(values), part).to_pylist() == [False, True, True, False]
