"""Tables with stable row ids: what pylance shows of their rows, and what searches find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset import Dataset, open_dataset
from lance_core.table.row_id_index import row_id_index

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

DIMENSION = 16
PSEUDO = [
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_row_created_at_version",
    "_row_last_updated_at_version",
]


def rows(generator: np.random.Generator, first: int, last: int) -> pa.Table:
    # few distinct values, so that many distances are equal
    vectors = generator.integers(0, 3, (last - first, DIMENSION)).astype(np.float32)
    array = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    ids = np.arange(first, last)
    return pa.table({"id": ids, "x": ids * 2, "vec": array})


def build(root: Path, index: str | None = None, seed: int = 5) -> lance.LanceDataset:
    """Append, update, delete, merge, compact, append."""
    generator = np.random.default_rng(seed)
    dataset = lance.write_dataset(
        rows(generator, 0, 900), root, max_rows_per_file=300, enable_stable_row_ids=True
    )
    if index is not None:
        num_sub_vectors = 4 if index == "IVF_PQ" else None
        dataset.create_index(
            "vec", index, metric="l2", num_partitions=4, num_sub_vectors=num_sub_vectors
        )
    dataset.update({"x": "x + 100000"}, where="id % 9 = 2")
    dataset.delete("id % 7 = 3")
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        rows(generator, 850, 950)
    )
    if seed % 2 == 1:
        dataset.optimize.compact_files(target_rows_per_fragment=2000)
    dataset.update({"x": "x + 100000"}, where="id % 11 = 5")
    dataset.insert(rows(generator, 2000, 2100))
    dataset.delete("id % 13 = 1")
    return lance.dataset(root)


def by_row_id(table: pa.Table) -> pa.Table:
    return table.sort_by("_rowid")


@pytest.mark.parametrize("seed", [4, 5])
def test_every_pseudo_column_is_as_pylance_shows_it(tmp_path: Path, seed: int) -> None:
    columns = ["id", *PSEUDO]
    for version in range(1, build(tmp_path / "t.lance", seed=seed).version + 1):
        theirs = lance.dataset(tmp_path / "t.lance", version=version)
        ours = open_dataset(tmp_path / "t.lance", version)
        assert ours.scan(columns).read_all().equals(theirs.to_table(columns=columns))


def test_taken_rows_have_the_pseudo_columns_of_the_scan(tmp_path: Path) -> None:
    build(tmp_path / "t.lance")
    ours = open_dataset(tmp_path / "t.lance")
    whole = ours.scan(["id", *PSEUDO]).read_all()
    ranks = np.random.default_rng(1).integers(0, whole.num_rows, 200)
    assert ours.take(ranks, ["id", *PSEUDO]).equals(whole.take(pa.array(ranks)))


def test_every_live_id_leads_to_its_row_and_dead_ones_nowhere(tmp_path: Path) -> None:
    build(tmp_path / "t.lance")
    ours = open_dataset(tmp_path / "t.lance")
    table = ours.scan(["_rowid", "_rowaddr"]).read_all()
    index = row_id_index(ours.session.files, ours.snapshot)
    next_id = ours.snapshot.manifest.next_row_id
    expected = np.full(next_id + 10, 2**64 - 1, np.uint64)
    expected[table["_rowid"].to_numpy()] = table["_rowaddr"].to_numpy()
    np.testing.assert_array_equal(index.find(np.arange(next_id + 10, dtype=np.uint64)), expected)
    assert index.num_rows == table.num_rows


def test_spilled_lineage_is_read_from_hidden_columns(tmp_path: Path) -> None:
    dataset = build(tmp_path / "t.lance")
    dataset.update_config({"lance.row_lineage.spill": "true"})
    dataset.update_config({"lance.row_lineage.inline_max_bytes": "0"})
    dataset.optimize.compact_files(target_rows_per_fragment=5000)
    theirs = lance.dataset(tmp_path / "t.lance")
    ours = open_dataset(tmp_path / "t.lance")
    assert any(-3 in file.field_ids for f in ours.snapshot.fragments for file in f.data_files)
    columns = ["id", *PSEUDO]
    assert ours.scan(columns).read_all().equals(theirs.to_table(columns=columns))


def exact(dataset: Dataset, query: NDArray[np.float32], k: int) -> list[int]:
    table = dataset.scan(["_rowid", "vec"]).read_all()
    vectors = table["vec"].combine_chunks().flatten().to_numpy().reshape(-1, DIMENSION)
    distances = ((vectors - query) ** 2).sum(axis=1)
    ids = table["_rowid"].to_numpy()
    found: list[int] = ids[np.lexsort((ids, distances))][:k].tolist()
    return found


@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.parametrize("index", [None, "IVF_FLAT"])
@pytest.mark.parametrize("k", [1, 10, 100, 5000])
def test_searches_give_the_rows_of_brute_force_ties_by_row_id(
    tmp_path: Path, seed: int, index: Literal["IVF_FLAT"] | None, k: int
) -> None:
    build(tmp_path / "t.lance", index, seed)
    ours = open_dataset(tmp_path / "t.lance")
    for query in np.random.default_rng(2).integers(0, 3, (5, DIMENSION)).astype(np.float32):
        expected = exact(ours, query, k)
        for use_index in (True, False):
            found = ours.search(query, k, nprobes=4, columns=["_rowid"], use_index=use_index)
            assert found["_rowid"].to_pylist() == expected


@pytest.mark.parametrize("seed", [4, 5])
def test_a_quantised_index_returns_rows_as_they_are_now(tmp_path: Path, seed: int) -> None:
    theirs = build(tmp_path / "t.lance", "IVF_PQ", seed)
    ours = open_dataset(tmp_path / "t.lance")
    query = np.ones(DIMENSION, np.float32)
    found = ours.search(query, 5000, nprobes=4, with_row_id=True)
    live = theirs.to_table(with_row_id=True)
    assert by_row_id(found.drop_columns(["_distance"])).equals(by_row_id(live))
    refined = ours.search(query, 20, nprobes=4, refine_factor=300, columns=["_rowid"])
    assert refined["_rowid"].to_pylist() == exact(ours, query, 20)


def test_an_index_keeps_answering_for_rows_that_an_update_of_another_column_moved(
    tmp_path: Path,
) -> None:
    generator = np.random.default_rng(3)
    dataset = lance.write_dataset(
        rows(generator, 0, 600), tmp_path / "t.lance", enable_stable_row_ids=True
    )
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2)
    dataset.update({"x": "0"}, where="id < 200")
    ours = open_dataset(tmp_path / "t.lance")
    query = np.ones(DIMENSION, np.float32)
    found = ours.search(query, 600, nprobes=2, columns=["id", "x"], fast_search=True)
    assert found.num_rows == 600
    assert all((row["x"] == 0) == (row["id"] < 200) for row in found.to_pylist())


def test_an_updated_vector_is_found_by_its_new_value_only(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    dataset = lance.write_dataset(
        rows(generator, 0, 600), tmp_path / "t.lance", enable_stable_row_ids=True
    )
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2)
    changed = rows(generator, 5, 6).set_column(
        2,
        "vec",
        pa.FixedSizeListArray.from_arrays(pa.array([50.0] * DIMENSION, pa.float32()), DIMENSION),
    )
    dataset.merge_insert("id").when_matched_update_all().execute(changed)
    ours = open_dataset(tmp_path / "t.lance")
    found = ours.search(np.full(DIMENSION, 50, np.float32), 600, nprobes=2, columns=["id"])
    assert found["id"].to_pylist()[0] == 5
    assert found["id"].to_pylist().count(5) == 1
    assert found["_distance"].to_pylist()[0] == 0


def test_a_search_finds_rows_of_a_table_with_null_vectors(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    table = rows(generator, 0, 300)
    nulls = pa.array([i % 4 == 0 for i in range(300)])
    vectors = pa.FixedSizeListArray.from_arrays(
        table["vec"].combine_chunks().flatten(), DIMENSION, mask=nulls
    )
    dataset = lance.write_dataset(
        table.set_column(2, "vec", vectors), tmp_path / "t.lance", enable_stable_row_ids=True
    )
    dataset.update({"x": "0"}, where="id % 5 = 1")
    dataset.delete("id % 6 = 2")
    ours = open_dataset(tmp_path / "t.lance")
    found = ours.search(np.ones(DIMENSION, np.float32), 300, columns=["id"])
    expected = [i for i in range(300) if i % 4 != 0 and i % 6 != 2]
    assert sorted(found["id"].to_pylist()) == expected
