"""Random filters of the whole dialect on random tables: rows as pylance's, or refused as there."""

from __future__ import annotations

import re

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from lance_core.errors import InvalidRequestError
from lance_core.expr.filter import parse_filter
from tests.filter_grammar import tables_and_filters
from tests.soak import many_examples

pytestmark = pytest.mark.interop


def theirs(table: pa.Table, text: str) -> list[int] | None:
    """Return the rows that pylance finds, None if it refuses."""
    dataset = lance.write_dataset(table, "memory://filters", data_storage_version="2.1")
    try:
        found = dataset.to_table(columns=["row"], filter=text)["row"]
    except (OSError, ValueError):
        return None
    rows: list[int] = found.to_pylist()
    return rows


def part(table: pa.Table, path: str) -> pa.Array:
    top, *below = path.replace("`", "").split(".")
    found = table[top].combine_chunks()
    for name in below:
        found = pc.struct_field(found, name)
    return found


def ours(table: pa.Table, text: str) -> list[int] | None:
    try:
        parsed = parse_filter(text, table.schema)
        columns = {path: part(table, path) for path in parsed.columns}
        batch = pa.record_batch({"row": table["row"].combine_chunks(), **columns})
        holds = parsed.holds(batch).to_pylist()
    except InvalidRequestError:
        return None
    return [row for row, value in enumerate(holds) if value]


_LOSES_NULLS = re.compile(
    r"(?=.*( OR |NOT \())(?=.*(NOT IN|!=|<>))"
    r"|(?=.*(NOT \(|IS )).*\b(\w+) IN \([^()]*\) AND \4 (NOT )?IN \(",
    re.DOTALL,
)
"""pylance joins ``i NOT IN (0) OR i != 1`` to what is true for nulls too, and so it does with
``NOT (i IN (0) AND i IN (1))`` and ``(i IN (0) AND i NOT IN (0)) IS FALSE``."""


def judged(table: pa.Table, text: str) -> set[int]:
    """Return the rows whose answer can be compared."""
    rows = range(table.num_rows)
    if _LOSES_NULLS.match(text) is None:
        return set(rows)
    used = [name for name in table.schema.names if name in text]
    return {row for row in rows if all(_is_told(table[name][row]) for name in used)}


def _is_told(value: pa.Scalar) -> bool:
    plain = value.as_py()
    return None not in plain.values() if isinstance(plain, dict) else plain is not None


@settings(max_examples=many_examples())
@given(case=tables_and_filters())
def test_a_filter_finds_the_rows_that_pylance_finds(case: tuple[pa.Table, str]) -> None:
    table, text = case
    found, expected = ours(table, text), theirs(table, text)
    if found is None or expected is None:
        assert found is expected, text
    else:
        rows = judged(table, text)
        assert set(found) & rows == set(expected) & rows, text
