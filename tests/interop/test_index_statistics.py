"""What is told of indices, against what pylance tells of the same ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core import open_dataset
from lance_core.errors import IndexNotFoundError
from lance_core.io.mapped_store import MappedStore
from lance_core.table.reuse_entry import write_reuse_entry
from lance_core.table.reuse_history import ReuseHistory
from tests.manifest_bytes import manifest_file
from tests.unknown_index import write_unknown_index

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.query.index_statistics import IndexStatistics

pytestmark = pytest.mark.interop

VECTORS = {"IVF_FLAT": "l2", "IVF_PQ": "cosine", "IVF_SQ": "dot", "IVF_RQ": "l2"}
GRAPHS = {"IVF_HNSW_FLAT": "cosine", "IVF_HNSW_PQ": "l2", "IVF_HNSW_SQ": "dot"}
SCALARS: dict[Any, str] = {
    "BTREE": "id",
    "BITMAP": "id",
    "ZONEMAP": "id",
    "BLOOMFILTER": "id",
    "NGRAM": "text",
    "LABEL_LIST": "tags",
    "INVERTED": "text",
}


def rows(start: int, count: int) -> pa.Table:
    vectors = np.random.default_rng(start).standard_normal((count, 16)).astype(np.float32)
    return pa.table(
        {
            "id": np.arange(start, start + count),
            "text": [f"row number {i}" for i in range(count)],
            "tags": [[f"t{i % 3}"] for i in range(count)],
            "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 16),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 1200 rows, 50 of them deleted, whose indices cover 1000, in two segments."""
    path = tmp_path_factory.mktemp("statistics") / "a.lance"
    theirs = lance.write_dataset(rows(0, 600), str(path), max_rows_per_file=300)
    for kind, metric in {**VECTORS, **GRAPHS}.items():
        more: dict[str, Any] = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
        theirs.create_index("v", kind, name=kind, metric=metric, num_partitions=2, **more)
    for kind, column in SCALARS.items():
        theirs.create_scalar_index(column, kind, name=kind)
    theirs = lance.write_dataset(rows(600, 400), str(path), mode="append")
    theirs.optimize.optimize_indices(num_indices_to_merge=0)
    theirs = lance.write_dataset(rows(1000, 200), str(path), mode="append")
    theirs.delete("id >= 575 AND id < 625")
    return path


def theirs_of(folder: Path, name: str) -> dict[str, Any]:
    return lance.dataset(str(folder)).stats.index_stats(name)


@pytest.mark.parametrize("name", [*VECTORS, *GRAPHS, *SCALARS])
def test_rows_segments_and_kinds_are_those_that_pylance_tells(folder: Path, name: str) -> None:
    ours, theirs = open_dataset(folder).index_statistics(name), theirs_of(folder, name)
    assert ours.index_type.replace("_", "") == theirs["index_type"].upper().replace("_", "")
    assert (ours.num_indexed_rows, ours.num_unindexed_rows) == (950, 200)
    assert ours.num_indexed_rows == theirs["num_indexed_rows"]
    assert ours.num_unindexed_rows == theirs["num_unindexed_rows"]
    assert len(ours.segments) == theirs["num_indices"]
    described = {each.name: each for each in lance.dataset(str(folder)).describe_indices()}[name]
    assert ours.num_bytes == described.total_size_bytes
    assert ours.type_url == described.type_url
    assert list(ours.columns) == described.field_names
    assert {each.unused for each in ours.segments} == {None}


@pytest.mark.parametrize("name", [*VECTORS, *GRAPHS])
def test_partitions_of_each_segment_are_those_that_pylance_tells(folder: Path, name: str) -> None:
    ours, theirs = open_dataset(folder).index_statistics(name), theirs_of(folder, name)
    assert ours.metric == {**VECTORS, **GRAPHS}[name]
    by_uuid = {each["uuid"]: each for each in theirs["segments"]}
    assert set(by_uuid) == {each.uuid for each in ours.segments}
    for each in ours.segments:
        sizes = [part["size"] for part in by_uuid[each.uuid]["partitions"]]
        found = each.partitions
        assert found is not None
        assert (found.num_partitions, found.num_rows) == (len(sizes), sum(sizes))
        assert (found.largest, found.num_empty) == (max(sizes), sizes.count(0))
        assert each.metric == by_uuid[each.uuid]["metric_type"]


def test_words_of_each_segment_are_those_that_pylance_tells(folder: Path) -> None:
    ours, theirs = open_dataset(folder).index_statistics("INVERTED"), theirs_of(folder, "INVERTED")
    found = [each.text for each in ours.segments]
    assert len(found) == len(theirs["segments"]) == 2
    for each, expected in zip(found, theirs["segments"], strict=True):
        assert each is not None
        assert (each.num_docs, each.num_tokens) == (expected["num_docs"], expected["num_tokens"])
        assert asdict(each.parameters) == {**expected["params"], "custom_stop_words": None}
        assert (each.num_partitions, each.has_positions, each.by_element) == (1, False, False)
    assert ours.num_partitions == 2
    assert ours.text == found[-1]


def test_all_indices_are_told_as_each_is_alone(folder: Path) -> None:
    dataset = open_dataset(folder)
    listed = dataset.list_indices()
    assert {each.name for each in listed} == {*VECTORS, *GRAPHS, *SCALARS}
    assert all(each == dataset.index_statistics(each.name) for each in listed)


def test_an_index_that_is_not_there_is_not_found(folder: Path) -> None:
    with pytest.raises(IndexNotFoundError, match=r"has no index .x.; there are: BITMAP"):
        open_dataset(folder).index_statistics("x")


def damaged(folder: Path, name: str, file_name: str) -> IndexStatistics:
    uuid = open_dataset(folder).index_statistics(name).segments[0].uuid
    (folder / "_indices" / uuid / file_name).unlink()
    return open_dataset(folder).index_statistics(name)


@pytest.mark.parametrize(
    ("kind", "column", "file_name"),
    [
        ("IVF_FLAT", "v", "auxiliary.idx"),
        ("BTREE", "id", "page_lookup.lance"),
        ("INVERTED", "text", "part_0_docs.lance"),
    ],
)
def test_a_damaged_index_is_described_by_its_manifest(
    tmp_path: Path, kind: Any, column: str, file_name: str
) -> None:
    dataset = lance.write_dataset(rows(0, 300), str(tmp_path / "a.lance"))
    if kind in SCALARS:
        dataset.create_scalar_index(column, kind, name="damaged")
    else:
        dataset.create_index(column, kind, name="damaged", num_partitions=2, metric="dot")
    found = damaged(tmp_path / "a.lance", "damaged", file_name)
    assert found.index_type == kind
    assert found.metric == (None if kind in SCALARS else "dot")
    assert (found.num_indexed_rows, found.num_partitions) == (300, None)
    assert "damaged or missing" in str(found.segments[0].unused)


def test_a_kind_that_is_not_read_is_told_by_its_name(tmp_path: Path) -> None:
    write_unknown_index(tmp_path / "a.lance", rows(0, 300))
    (found,) = open_dataset(tmp_path / "a.lance").list_indices()
    assert (found.index_type, found.metric, found.num_indexed_rows) == ("JSON", None, 300)
    assert found.segments[0].unused is not None


def test_what_cannot_be_followed_to_its_rows_is_told_as_unused(tmp_path: Path) -> None:
    root = tmp_path / "a.lance"
    dataset = lance.write_dataset(rows(0, 300), str(root), enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE", name="values")
    dataset.create_index("v", "IVF_FLAT", name="vectors", num_partitions=2)
    manifest = open_dataset(root).snapshot.manifest
    entry = write_reuse_entry(
        MappedStore(str(root)), ReuseHistory(()), dataset_version=1, created_at_ms=0
    )
    entries = [*manifest.index_section.indices, entry]
    (root / manifest.path).write_bytes(manifest_file(manifest.message, indices=entries))
    found = open_dataset(root).list_indices()
    assert [each.name for each in found] == ["values", "vectors"]
    for each in found:
        assert "stable row ids" in str(each.segments[0].unused)
