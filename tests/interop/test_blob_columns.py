"""Tables with blob columns: the column is refused by name, the others can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance_core.Dataset:
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        ]
    )
    rows = pa.table([pa.array([1, 2]), pa.array([b"x", b"yy"], pa.large_binary())], schema=schema)
    lance.write_dataset(rows, str(tmp_path / "t.lance"), data_storage_version=request.param)
    return lance_core.open_dataset(str(tmp_path / "t.lance"))


def test_a_blob_column_is_never_read_as_nulls(dataset: lance_core.Dataset):
    with pytest.raises(UnsupportedFeatureError, match=r"column 'b' of .* is encoded as blob"):
        dataset.scan().read_all()
    with pytest.raises(UnsupportedFeatureError, match="column 'b'"):
        dataset.take([0], ["b"])


def test_the_other_columns_can_be_read(dataset: lance_core.Dataset):
    assert dataset.scan(["id"]).read_all()["id"].to_pylist() == [1, 2]
