"""Files of pylance that few write: odd dictionaries of 2.0, odd words for packing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance.file import LanceFileReader as PylanceReader, LanceFileWriter as PylanceWriter

from lance_core.errors import UnsupportedFeatureError
from lance_core.file import LanceFileReader, LanceFileWriter
from tests.lance_columns import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

INDICES = pa.array([0, None, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0], pa.int8())
LABELS = pa.DictionaryArray.from_arrays(INDICES, ["x", "y"])
NULLS = pa.DictionaryArray.from_arrays(INDICES, pa.nulls(2))
PAIRS = pa.FixedSizeListArray.from_arrays(LABELS, 2)
DICTIONARIES = {
    "plain": LABELS,
    "lists": pa.ListArray.from_arrays([0, 3, 12], LABELS),
    "structs": pa.StructArray.from_arrays([LABELS], ["a"]),
    "pairs": PAIRS,
    "pairs of pairs": pa.FixedSizeListArray.from_arrays(PAIRS, 3),
    "lists of pairs": pa.ListArray.from_arrays([0, 1, 6], PAIRS),
    "structs of pairs": pa.StructArray.from_arrays([PAIRS], ["a"]),
    "nulls": NULLS,
    "pairs of nulls": pa.FixedSizeListArray.from_arrays(NULLS, 2),
    "lists of nulls": pa.ListArray.from_arrays([0, 3, 12], NULLS),
    "structs of nulls": pa.StructArray.from_arrays([NULLS], ["a"]),
}
NO_VALUES = pa.list_(pa.null(), 2)
PAIRS_OF_NULL = {
    "pairs": pa.array([[None, None], None], NO_VALUES),
    "lists of pairs": pa.array([[[None, None]], None], pa.list_(NO_VALUES)),
    "structs of pairs": pa.array([{"a": [None, None]}, {"a": None}], pa.struct({"a": NO_VALUES})),
}
NUMBERS = pa.array([{"a": 1, "b": 2}, {"a": 3, "b": 9}])
WORDS = ("true", "TRUE", "1", "on", "y", "Yes")
PACKING = [
    (key, word, version)
    for key in ("lance-encoding:packed", "packed")
    for word in WORDS
    for version in VERSIONS
]


def written(table: pa.Table, version: str, path: Path) -> LanceFileReader:
    """Write a table with pylance and open it with ours."""
    with PylanceWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table)
    return LanceFileReader.open_path(path)


def packed(key: str, word: str) -> pa.Table:
    """Return structs that ask to be packed, and a column behind them."""
    fields = [pa.field("c", NUMBERS.type, metadata={key: word}), pa.field("z", pa.int64())]
    return pa.table([NUMBERS, pa.array([7, 8])], schema=pa.schema(fields))


@pytest.mark.parametrize("name", DICTIONARIES)
def test_dictionaries_of_2_0_files_are_read_at_any_depth(name: str, tmp_path: Path) -> None:
    table = pa.table({"c": DICTIONARIES[name]})
    reader = written(table, "2.0", tmp_path / "a.lance")
    assert reader.read_all().to_pydict() == table.to_pydict()
    rows = list(range(len(table)))
    assert reader.take_table(rows).to_pydict() == table.to_pydict()


@pytest.mark.parametrize(("key", "word", "version"), PACKING)
def test_every_word_by_which_pylance_packs_is_known(
    key: str, word: str, version: str, tmp_path: Path
) -> None:
    table = packed(key, word)
    reader = written(table, version, tmp_path / "a.lance")
    assert reader.read_all().to_pydict() == table.to_pydict()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_words_after_which_pylance_cannot_read_are_not_written(
    version: str, tmp_path: Path
) -> None:
    schema = packed("packed", "1").schema
    with pytest.raises(UnsupportedFeatureError, match="must be"):
        LanceFileWriter.open_path(tmp_path / "a", schema, version=version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", PAIRS_OF_NULL)
def test_fixed_size_lists_of_null_are_written(name: str, version: str, tmp_path: Path) -> None:
    table = pa.table({"c": PAIRS_OF_NULL[name], "z": [7, 8]})
    path = str(tmp_path / "a.lance")
    with LanceFileWriter.open_path(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    assert LanceFileReader.open_path(path).read_all().equals(table)
    assert PylanceReader(path).read_all().to_table().to_pydict() == table.to_pydict()
