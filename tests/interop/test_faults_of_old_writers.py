"""What old writers left out or wrote otherwise, put into tables whose rows are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_core.dataset import Dataset, open_dataset
from tests.manifest_bytes import manifest_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lance_core.proto import table_pb2
    from lance_core.table.manifest import Manifest

pytestmark = pytest.mark.interop

DIMENSION = 8
VECTORS = np.random.default_rng(3).standard_normal((600, DIMENSION)).astype(np.float32)
LIVE = [i for i in range(600) if i % 10 != 3]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two fragments of 2.0 files with deleted rows and a segment of a vector index on each."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), DIMENSION)
    table = pa.table({"id": np.arange(600), "vec": vectors})
    root = tmp_path / "t.lance"
    dataset = lance.write_dataset(
        table.slice(0, 300), root, data_storage_version="2.0", enable_v2_manifest_paths=False
    )
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2)
    dataset.insert(table.slice(300))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.delete("id % 10 = 3")
    return root


def manifest_of(root: Path) -> Manifest:
    return open_dataset(root).snapshot.manifest


def replace(
    root: Path,
    manifest: Manifest,
    indices: Iterable[table_pb2.IndexMetadata] | None = None,
) -> Dataset:
    """Write the newest manifest anew, with the index entries it had unless others are given."""
    path = root / manifest.path
    path.unlink()  # it is mapped
    held = manifest.index_section.indices if indices is None else indices
    path.write_bytes(manifest_file(manifest.message, indices=held))
    return open_dataset(root)


def assert_complete(dataset: Dataset, *, with_index: bool) -> None:
    assert dataset.count_rows() == len(LIVE)
    assert dataset.scan().read_all()["id"].to_pylist() == LIVE
    query = VECTORS[77]
    found = dataset.search(query, 20, nprobes=2, columns=["id"])
    order = np.argsort(((VECTORS[LIVE] - query) ** 2).sum(axis=1), kind="stable")[:20]
    assert found["id"].to_pylist() == [LIVE[i] for i in order]
    found = dataset.search(query, 600, nprobes=2, columns=["id"], fast_search=True)
    assert found.num_rows == (len(LIVE) if with_index else 0)


def test_files_of_version_0_3_are_2_0_files_whatever_the_table_says(root: Path) -> None:
    for declared in ("", "0.1", "2.0"):
        manifest = manifest_of(root)
        message = manifest.message
        message.ClearField("data_format")
        if declared != "":
            message.data_format.file_format, message.data_format.version = "lance", declared
        message.writer_feature_flags |= 4
        for fragment in message.fragments:
            for file in fragment.files:
                file.file_major_version, file.file_minor_version = 0, 3
        assert_complete(replace(root, manifest), with_index=True)


def test_the_writer_and_the_sizes_of_files_may_be_left_out(root: Path) -> None:
    manifest = manifest_of(root)
    for name in ("writer_version", "timestamp", "transaction_file", "max_fragment_id"):
        manifest.message.ClearField(name)
    for fragment in manifest.message.fragments:
        for file in fragment.files:
            file.ClearField("file_size_bytes")
    assert_complete(replace(root, manifest), with_index=True)


def test_the_number_of_deleted_rows_may_be_left_out(root: Path) -> None:
    manifest = manifest_of(root)
    for fragment in manifest.message.fragments:
        fragment.deletion_file.ClearField("num_deleted_rows")
    assert_complete(replace(root, manifest), with_index=True)


def test_an_index_section_may_be_empty(root: Path) -> None:
    assert_complete(replace(root, manifest_of(root), []), with_index=False)


def test_index_entries_may_have_neither_details_nor_files(root: Path) -> None:
    manifest = manifest_of(root)
    for entry in manifest.index_section.indices:
        for name in ("index_details", "files", "created_at", "index_version"):
            entry.ClearField(name)
    assert_complete(replace(root, manifest), with_index=True)


@pytest.mark.parametrize(
    "url",
    ["/lance.table.VectorIndexDetails", "VectorIndexDetails", "/lance.index.pb.vectorindexdetails"],
)
def test_details_are_known_by_the_last_part_of_their_type(root: Path, url: str) -> None:
    manifest = manifest_of(root)
    for entry in manifest.index_section.indices:
        entry.index_details.type_url = url
    assert_complete(replace(root, manifest), with_index=True)


def test_segments_that_claim_the_same_fragments_double_no_row(root: Path) -> None:
    manifest = manifest_of(root)
    first, second = manifest.index_section.indices
    second.fragment_bitmap = (
        BitMap.deserialize(first.fragment_bitmap) | BitMap.deserialize(second.fragment_bitmap)
    ).serialize()
    dataset = replace(root, manifest)
    query = VECTORS[77]
    found = dataset.search(query, 600, nprobes=2, columns=["id"])["id"].to_pylist()
    assert sorted(found) == LIVE


def test_unknown_coverage_is_no_coverage(root: Path) -> None:
    manifest = manifest_of(root)
    for entry in manifest.index_section.indices:
        entry.ClearField("fragment_bitmap")
    assert_complete(replace(root, manifest), with_index=False)


def test_fragments_may_stand_in_any_order(root: Path) -> None:
    manifest = manifest_of(root)
    last = manifest.message.fragments.pop()
    manifest.message.fragments.insert(0, last)
    dataset = replace(root, manifest)
    ids = [*LIVE[len(LIVE) // 2 :], *LIVE[: len(LIVE) // 2]]
    assert dataset.scan().read_all()["id"].to_pylist() == ids
    assert dataset.take([0, len(LIVE) // 2])["id"].to_pylist() == [300, 0]
    assert dataset.search(VECTORS[310], 1, nprobes=2, columns=["id"])["id"].to_pylist() == [310]


def test_names_of_old_writers_and_their_latest_manifest_do_no_harm(root: Path) -> None:
    (root / "_latest.manifest").write_bytes(b"old")
    assert all(path.stem.isdigit() for path in (root / "_versions").glob("*.manifest"))
    assert_complete(open_dataset(root), with_index=True)


def test_versions_of_rows_may_be_left_out_of_a_table_with_row_ids(tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": np.arange(9)}), root, enable_stable_row_ids=True)
    manifest = manifest_of(root)
    for fragment in manifest.message.fragments:
        fragment.ClearField("inline_created_at_versions")
        fragment.ClearField("inline_last_updated_at_versions")
    replace(root, manifest)
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    theirs = lance.dataset(root).to_table(columns=columns)
    assert open_dataset(root).scan(columns).read_all().equals(theirs)
