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


FILTERS = ["id = 77", "id < 40", "cat = 'cat-3'", "cat IS NULL", "qty >= 500", "qty IS NULL"]


@pytest.mark.parametrize("release", ["0.20.0", "1.0.4", "10.0.0"])
def test_scalar_indices_of_an_old_dataset_follow_a_compaction(
    old_dataset: Callable[[str, str], Path], release: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    shutil.copytree(old_dataset(release, "scalar"), uri)
    before = open_dataset(uri).drop_index("text_idx")  # of full text, which is not written here
    after = before.compact(indices="remap", deletions_threshold=0.0)
    old = {each.uuid for each in before.snapshot.indices}
    followed = {each.name for each in after.snapshot.indices if each.uuid not in old}
    # the trees of 0.20 are legacy files: nobody but that release reads them
    trees = set() if release == "0.20.0" else {"id_idx", "qty_idx", "ts_idx"}
    assert followed == {"cat_idx", "tags_idx"} | trees
    assert len(after.snapshot.fragments) < len(before.snapshot.fragments)
    theirs = lance.dataset(uri)
    for test in [*FILTERS, "array_has(tags, 'amber')"]:
        expected = theirs.to_table(filter=test, use_scalar_index=False)["id"].to_pylist()
        assert theirs.to_table(filter=test)["id"].to_pylist() == expected
        assert after.scan(["id"], filter=test).read_all()["id"].to_pylist() == expected
    assert list(after.verify()) == []


@pytest.mark.parametrize("release", ["1.0.4", "10.0.0"])
@pytest.mark.parametrize("name", ["ivf_pq_cosine", "ivf_hnsw_sq_l2", "ivf_sq_l2"])
def test_a_vector_index_of_an_old_dataset_follows_a_compaction(
    old_dataset: Callable[[str, str], Path], release: str, name: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    shutil.copytree(old_dataset(release, name), uri)
    before = open_dataset(uri)
    after = before.compact(indices="remap", deletions_threshold=0.0)
    assert after.snapshot.indices[0].uuid != before.snapshot.indices[0].uuid
    vectors = after.scan(["vec"]).read_all()["vec"]
    for place in (0, len(vectors) // 2):
        query = pa.array(vectors[place].as_py(), pa.float32()).to_numpy()
        ours = after.search(query, 5, columns=["_rowid"], nprobes=1000, refine_factor=10)
        wanted = {"column": "vec", "q": query, "k": 5, "nprobes": 1000, "refine_factor": 10}
        theirs = lance.dataset(uri).to_table(nearest=wanted, columns=["vec"], with_row_id=True)
        assert set(ours["_rowid"].to_pylist()) == set(theirs["_rowid"].to_pylist())
