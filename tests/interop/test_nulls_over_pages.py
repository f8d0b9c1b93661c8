"""Nulls and empty lists at every depth, in pages that differ in what occurs, as pylance reads them.

Pages say only what occurs in them, and pylance loses count of some combinations of pages; the
writer avoids those.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from lance.file import LanceFileReader as PylanceReader

from lance_core.io.mapped_store import MappedStore
from tests.lance_columns import VERSIONS
from tests.written_files import FILE, read_back, write_table

if TYPE_CHECKING:
    from collections.abc import Callable

    Rows = st.SearchStrategy[list[object]]

pytestmark = pytest.mark.interop
NUMBER = pa.int8()
WITH_LEVELS = [version for version in VERSIONS if version != "2.0"]


def lists(of: pa.DataType) -> pa.DataType:
    return pa.list_(of)


def struct(of: pa.DataType) -> pa.DataType:
    return pa.struct([("a", of), pa.field("b", NUMBER, nullable=False)])


def strict_lists(of: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", of, nullable=False))


def strict_struct(of: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("a", of, nullable=False)])


SHAPES: list[list[Callable[[pa.DataType], pa.DataType]]] = [
    [struct],
    [struct, struct],
    [lists, struct],
    [lists, lists],
    [lists, struct, lists],
    [struct, lists, struct],
    [lists, struct, struct],
    [lists, struct, lists, struct],
    [struct, lists, struct, struct, lists],
    [lists, strict_struct, struct],
    [strict_lists, struct, strict_lists],
    [strict_struct, lists, strict_struct],
]
"""What stands around a number, innermost first."""
TYPES = [reduce(lambda kind, around: around(kind), shape, NUMBER) for shape in SHAPES]


def values(kind: pa.DataType, *, nullable: bool = True) -> st.SearchStrategy[object]:
    """Draw Python values of a type."""
    some: st.SearchStrategy[object]
    if pa.types.is_struct(kind):
        children = {field.name: values(field.type, nullable=field.nullable) for field in kind}
        some = st.fixed_dictionaries(children)
    elif pa.types.is_list(kind):
        item = values(kind.value_type, nullable=kind.value_field.nullable)
        some = st.lists(item, max_size=3)
    else:
        some = st.integers(0, 9)
    return st.none() | some if nullable else some


def tables() -> st.SearchStrategy[pa.Table]:
    """Draw a few rows of one of the types."""

    def rows(kind: pa.DataType) -> st.SearchStrategy[pa.Table]:
        some = st.lists(values(kind), min_size=1, max_size=8)
        return some.map(lambda drawn: pa.table({"c": pa.array(drawn, kind)}))

    return st.sampled_from(TYPES).flatmap(rows)


def assert_both_read(folder: Path, table: pa.Table) -> None:
    reader = PylanceReader(str(folder / FILE))
    wanted = table["c"].to_pylist()
    assert reader.read_all().to_table()["c"].to_pylist() == wanted
    first = table.num_rows // 2
    rows = [first, table.num_rows - 1]
    if rows[0] != rows[1]:
        taken = reader.take_rows(rows).to_table()["c"].to_pylist()
        assert taken == [wanted[row] for row in rows]
    ranged = reader.read_range(first, table.num_rows - first).to_table()
    assert ranged["c"].to_pylist() == wanted[first:]
    assert read_back(MappedStore(folder))["c"].to_pylist() == wanted


@pytest.mark.parametrize("version", WITH_LEVELS)
@given(table=tables(), max_page_bytes=st.sampled_from([1, 16, 1 << 20]))
def test_pages_of_all_kinds_go_together(version: str, table: pa.Table, max_page_bytes: int) -> None:
    with TemporaryDirectory() as folder:
        store = MappedStore(Path(folder))
        write_table(store, FILE, table, version, max_page_bytes=max_page_bytes)
        assert_both_read(Path(folder), table)


def mostly_empty(num_rows: int, kind: pa.DataType) -> pa.ListArray:
    """Return lists that are empty but for three."""
    lengths = np.zeros(num_rows, np.int32)
    lengths[[5, num_rows // 2, num_rows - 2]] = 1
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array([1, 0, 1]).cast(kind))


@pytest.mark.parametrize("version", WITH_LEVELS)
@pytest.mark.parametrize("kind", [pa.int16(), pa.string(), pa.bool_()], ids=str)
@pytest.mark.parametrize("in_rows", [True, False], ids=["many rows", "one row"])
def test_more_empty_lists_than_a_chunk_holds_are_read(
    version: str, kind: pa.DataType, in_rows: bool, tmp_path: Path
) -> None:
    column: pa.Array = mostly_empty(200_000, kind)
    if not in_rows:
        column = pa.ListArray.from_arrays(pa.array([0, 3, 199_999, 200_000], pa.int32()), column)
    table = pa.table({"c": column})
    write_table(MappedStore(tmp_path), FILE, table, version)
    assert PylanceReader(str(tmp_path / FILE)).read_all().to_table() == table
    assert read_back(MappedStore(tmp_path)) == table


@pytest.mark.parametrize("version", WITH_LEVELS)
def test_rows_that_go_on_over_many_chunks_are_read(version: str, tmp_path: Path) -> None:
    offsets = np.cumsum([0, 3, 150_000, 0, 2, 70_000, 1])
    items = pa.array(np.arange(offsets[-1]) % 1000, pa.int32())
    table = pa.table({"c": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)})
    write_table(MappedStore(tmp_path), FILE, table, version)
    assert_both_read(tmp_path, table)
