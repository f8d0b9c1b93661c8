"""Datasets of older Lance releases that we append to, change and extend: pylance reads them on."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

from lance_core.dataset import open_dataset

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("release", ["0.20.0", "1.0.4", "10.0.0"])
@pytest.mark.parametrize("name", ["plain", "evolve", "ivf_pq_l2"])
def test_an_old_dataset_is_changed_in_every_way(
    old_dataset: Callable[[str, str], Path], release: str, name: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    shutil.copytree(old_dataset(release, name), uri)
    old = open_dataset(uri)
    rows = old.scan(limit=3).read_all()
    first = rows.column_names[0]
    value = rows[first][0].as_py()
    changed = old.append(rows).update({first: value}, where=f"{first} = {rows[first][1].as_py()}")
    changed = changed.add_columns(
        lambda batch: pa.table({"copied": batch[first]}), read_columns=[first]
    )
    changed = changed.delete(f"{first} = {rows[first][2].as_py()}")
    table = lance.dataset(uri).to_table()
    lance.dataset(uri).validate()
    assert str(changed.scan().read_all().to_pydict()) == str(table.to_pydict())
    assert table["copied"].equals(table[first])
    assert table[first].to_pylist().count(value) >= 4
    assert changed.count_rows() < old.count_rows() + 3
    assert list(changed.verify()) == []
    assert old.checkout(old.version).count_rows() == old.count_rows()
