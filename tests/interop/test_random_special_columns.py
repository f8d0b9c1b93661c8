"""Random columns that are handed out in another form than they are written in."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.file.reader import LanceFileReader
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from tests.lance_cases import LanceCase, write_case
from tests.lance_columns import VERSIONS
from tests.lance_strategies import lenient
from tests.pylance_files import write_with_pylance
from tests.same_values import assert_same
from tests.soak import many_examples

pytestmark = pytest.mark.interop
NAME = "file.lance"
BLOB = {"lance-encoding:blob": "true"}

Writer = Literal["ours", "pylance"]


def read_written(
    writer: Writer, version: str, column: pa.Array, page_rows: int | None, metadata: Any = None
) -> pa.Array:
    """Write a column and return it as our reader hands it out; blobs as their bytes."""
    schema = pa.schema([pa.field("c", column.type, metadata=metadata)])
    case = LanceCase(pa.table([column], schema=schema), version, page_rows)
    with TemporaryDirectory() as folder:
        store = MappedStore(Path(folder))
        if writer == "ours":
            write_case(case, store, NAME)
        else:
            write_with_pylance(case, Path(folder) / NAME)
        reader = LanceFileReader.open(RangeScheduler(store), NAME)
        target = reader.target("c", blob_handling="all_binary")
        (found,) = reader.read([target], [(0, reader.num_rows)])
        assert_same(found.slice(1), reader.read([target], [(min(1, len(found)), len(found))])[0])
        return found


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | values, max_size=40)


page_lengths = st.sampled_from([None, 3, 11])
few = settings(lenient, max_examples=max(20, many_examples() // 3))
both_writers = pytest.mark.parametrize("writer", ["ours", "pylance"])
all_versions = pytest.mark.parametrize("version", VERSIONS)

numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@both_writers
@all_versions
@few
@given(values=nullable(documents), page_rows=page_lengths)
def test_documents_keep_their_meaning(
    writer: Writer, version: str, values: list[Any], page_rows: int | None
) -> None:
    # a null among the values is no value, not the document null
    written = [None if value is None else json.dumps(value) for value in values]
    found = read_written(writer, version, pa.array(written, pa.json_()), page_rows)
    assert found.type == pa.json_()
    read = [None if text is None else json.loads(text) for text in found.storage.to_pylist()]
    assert [text is None for text in found.storage.to_pylist()] == [v is None for v in values]
    assert read == values


@both_writers
@all_versions
@few
@given(
    values=nullable(st.binary(max_size=50)),
    repeats=st.sampled_from([1, 1, 1, 3_000]),
    page_rows=page_lengths,
)
def test_blobs_are_the_bytes_that_were_written(
    writer: Writer, version: str, values: list[bytes | None], repeats: int, page_rows: int | None
) -> None:
    column = pa.array([None if v is None else v * repeats for v in values], pa.large_binary())
    assert_same(read_written(writer, version, column, page_rows, BLOB), column)


@both_writers
@all_versions
@few
@given(values=nullable(st.uuids()), page_rows=page_lengths)
def test_extension_types_are_served_as_their_storage(
    writer: Writer, version: str, values: list[Any], page_rows: int | None
) -> None:
    storage = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    assert_same(read_written(writer, version, column, page_rows), storage)


@both_writers
@all_versions
@few
@given(values=nullable(st.text(max_size=40)), page_rows=page_lengths)
def test_views_are_served_as_plain_text(
    writer: Writer, version: str, values: list[str | None], page_rows: int | None
) -> None:
    if writer == "pylance" and version == "2.0":
        return  # it does not write them
    column = pa.array(values, pa.string_view())
    assert_same(read_written(writer, version, column, page_rows), pa.array(values, pa.string()))
