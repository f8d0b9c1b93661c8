"""Names that no column of a table can have, for every table has columns of these names."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from lance_core.dataset import ColumnChange, write_dataset
from lance_core.errors import InvalidRequestError
from lance_core.operations.given_rows import RESERVED_NAMES

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", RESERVED_NAMES)
def test_reserved_names_are_refused_wherever_a_column_gets_its_name(tmp_path, name):
    named, plain = pa.table({name: [1]}), pa.table({"a": [1]})
    with pytest.raises(OSError, match="reserved name"):
        lance.write_dataset(named, str(tmp_path / "theirs.lance"))
    with pytest.raises(InvalidRequestError, match=name):
        write_dataset(tmp_path / "new.lance", named)
    dataset = write_dataset(tmp_path / "ours.lance", plain)
    for make in (
        lambda: dataset.overwrite(named),
        lambda: dataset.append(named),
        lambda: dataset.add_columns(named),
        lambda: dataset.add_columns(pa.field(name, pa.int64())),
        lambda: dataset.alter_columns(ColumnChange("a", name=name)),
    ):
        with pytest.raises(InvalidRequestError, match=name):
            make()
    assert lance.dataset(str(tmp_path / "ours.lance")).version == 1


@pytest.mark.parametrize("name", ["_ROWID", "_distance", "_score"])
def test_other_names_and_parts_of_structs_are_free(tmp_path, name):
    table = pa.table({name: [1], "s": [{"_rowid": 2, "b": 3}]})
    dataset = write_dataset(tmp_path / "a.lance", table)
    dataset.alter_columns(ColumnChange("s.b", name="_rowaddr"))
    stored = lance.dataset(str(tmp_path / "a.lance")).to_table().to_pylist()
    assert stored == [{name: 1, "s": {"_rowid": 2, "_rowaddr": 3}}]
