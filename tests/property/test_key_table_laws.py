"""Keys of several columns: numbers stand for equal keys, as a dict of tuples says."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, strategies as st

from lance_core.operations.key_table import KeyTable

Key = tuple[int | None, str | None, bool | None]

keys = st.tuples(
    st.none() | st.integers(-3, 3), st.none() | st.sampled_from("abc"), st.none() | st.booleans()
)


def columns(rows: list[Key], width: int) -> list[pa.Array]:
    types = (pa.int64(), pa.string(), pa.bool_())
    return [pa.array([row[i] for row in rows], types[i]) for i in range(width)]


@given(st.lists(keys, max_size=30), st.lists(keys, max_size=30), st.integers(1, 3))
def test_keys_are_found_as_a_dict_finds_them(
    known: list[Key], asked: list[Key], width: int
) -> None:
    names = ["a", "b", "c"][:width]
    given_columns = [pa.chunked_array([column]) for column in columns(known, width)]
    table = KeyTable(given_columns, names)
    whole = [key[:width] for key in known]
    distinct = {key for key in whole if None not in key}
    numbers = dict(zip(whole, table.numbers.tolist(), strict=True))
    assert table.num_keys == len(distinct)
    assert sorted(numbers[key] for key in distinct) == list(range(len(distinct)))
    found = table.find(columns(asked, width)).tolist()
    for key, number in zip(asked, found, strict=True):
        part = key[:width]
        assert number == (numbers[part] if part in distinct else -1)
