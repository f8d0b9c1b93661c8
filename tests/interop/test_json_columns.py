"""JSON columns are served as the text that pylance serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset
from tests.lance_columns import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path

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
