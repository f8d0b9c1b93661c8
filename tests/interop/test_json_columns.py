"""JSON columns are served as the text that pylance serves."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from lance.file import LanceFileReader as PylanceReader, LanceFileWriter as PylanceWriter

from lance_core.dataset import open_dataset
from lance_core.file import LanceFileReader, LanceFileWriter
from tests.json_texts import texts
from tests.lance_columns import VERSIONS

pytestmark = pytest.mark.interop

TEXTS = ['{"b":[1,{"z":-2.5e-7}],"a":"é"}', "[]", "17", "1e400", None, '"x\\ny"', "null", "{}"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_json_column_is_served_as_pylance_serves_it(version: str, tmp_path: Path) -> None:
    column = pa.array(TEXTS * 300, pa.json_())
    uri = str(tmp_path / "json.lance")
    table = pa.table({"j": column})
    wanted = lance.write_dataset(table, uri, data_storage_version=version)  # type: ignore[arg-type]  # one of its literals
    dataset = open_dataset(uri)
    found = pa.Table.from_batches(dataset.scan())
    assert found.schema == dataset.schema == wanted.schema
    assert found.combine_chunks().equals(wanted.to_table().combine_chunks())
    rows = np.array([3, 2000, 4, 4, 0])
    assert dataset.take(rows).equals(wanted.take(rows.tolist()))


def test_json_inside_structs_and_lists_is_served_as_text(tmp_path: Path) -> None:
    texts = pa.array(TEXTS * 300, pa.json_())
    nulls = pa.array(np.arange(len(texts)) % 5 == 0)
    structs = pa.StructArray.from_arrays([texts], ["j"], mask=nulls)
    uri = str(tmp_path / "json.lance")
    wanted = lance.write_dataset(pa.table({"s": structs}), uri)
    dataset = open_dataset(uri)
    assert pa.Table.from_batches(dataset.scan()).equals(wanted.to_table())
    alone = pa.Table.from_batches(dataset.scan(["s.j"]))["s.j"]
    assert alone.equals(wanted.to_table(columns=["s.j"])["s.j"])


@given(column=st.lists(st.none() | texts, min_size=1, max_size=20))
def test_random_texts_are_stored_and_spelt_as_pylance_does(column: list[str | None]) -> None:
    table = pa.table({"j": pa.array(column, pa.json_())})
    with TemporaryDirectory() as folder:
        theirs, ours = Path(folder) / "p.lance", Path(folder) / "o.lance"
        with PylanceWriter(str(theirs), table.schema, version="2.2") as writer:
            writer.write_batch(table)
        with LanceFileWriter.open_path(ours, table.schema) as own:
            own.write_batch(table)
        stored = [PylanceReader(str(path)).read_all().to_table() for path in (theirs, ours)]
        assert stored[0].equals(stored[1])
        spelt = [LanceFileReader.open_path(path).read_all() for path in (theirs, ours)]
        assert spelt[0].equals(spelt[1])
