"""Segments whose files or column the dataset lacks are not committed: searches would fail."""

from __future__ import annotations

import uuid
from functools import partial
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core import NewIndex
from lance_core.errors import InvalidRequestError
from lance_core.proto import table_pb2

pytestmark = pytest.mark.interop

INDEX = NewIndex("i", "id", "BTREE")
TABLE = pa.table({"id": range(100), "other": range(100)})


def write(folder: Path) -> lance_core.Dataset:
    lance.write_dataset(TABLE, str(folder))
    return lance_core.open_dataset(folder)


def folder_of(path: Path, segment: table_pb2.IndexMetadata) -> Path:
    return path / "_indices" / str(uuid.UUID(bytes=segment.uuid.uuid))


def changed(segment: table_pb2.IndexMetadata) -> table_pb2.IndexMetadata:
    return table_pb2.IndexMetadata.FromString(segment.SerializeToString())


def check_refused(dataset: lance_core.Dataset, segment: table_pb2.IndexMetadata, why: str) -> None:
    before = sorted(Path(dataset.uri).glob("_indices/*"))
    for work in (partial(dataset.commit_segments, "i"), dataset.merge_segments):
        with pytest.raises(InvalidRequestError, match=why):
            work([segment])
    assert sorted(Path(dataset.uri).glob("_indices/*")) == before
    assert lance_core.open_dataset(dataset.uri).list_indices() == ()


def test_segments_of_another_dataset_are_refused(tmp_path: Path) -> None:
    here, there = write(tmp_path / "here"), write(tmp_path / "there")
    check_refused(here, there.build_segment(INDEX), "page_data.lance.*build the segment anew")


@pytest.mark.parametrize("damage", ["removed", "cut", "removed of an old writer"])
def test_segments_that_lost_files_are_refused(tmp_path: Path, damage: str) -> None:
    dataset = write(tmp_path / "t")
    segment, whole = dataset.build_segment(INDEX), dataset.build_segment(INDEX)
    files = sorted(folder_of(tmp_path / "t", segment).iterdir())
    if damage == "cut":
        files[0].write_bytes(files[0].read_bytes()[:-1])
    else:
        for each in files:
            each.unlink()
    if damage == "removed of an old writer":
        del segment.files[:]
    check_refused(dataset, segment, "is not in this dataset, or is another")
    done = dataset.commit_segments("i", [whole])
    assert lance.dataset(done.uri).count_rows("id < 30") == 30


def test_segments_that_cleanup_removed_are_refused(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t").create_index("id", "BTREE", "i")
    (segment,) = dataset.segments_of("i")
    dropped = dataset.drop_index("i")
    dropped.commit_segments("i", [segment]).drop_index("i")  # whose files are still there
    newest = lance_core.open_dataset(dataset.uri)
    newest.cleanup(retain_versions=1, delete_unverified=True)
    check_refused(newest, segment, "is not in this dataset")


def test_segments_of_no_column_or_place_are_refused(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t")
    segment = dataset.build_segment(INDEX)
    no_column, no_uuid, no_base = (changed(segment) for _ in range(3))
    no_column.fields[0] = 99
    no_uuid.uuid.uuid = b"short"
    no_base.base_id = 7
    for each, why in (
        (no_column, "on a column that version 1 does not have"),
        (no_uuid, "UUID of 5 bytes"),
        (no_base, "no base path 7"),
    ):
        check_refused(dataset, each, why)
    dropped = dataset.drop_columns(["id"])
    check_refused(dropped, segment, "on a column that version 2 does not have")


def test_segments_do_not_replace_an_index_of_another_column(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t").create_index("other", "BTREE", "i")
    with pytest.raises(InvalidRequestError, match="on another column; drop it first"):
        dataset.commit_segments("i", [dataset.build_segment(INDEX)])
    done = dataset.drop_index("i")
    done = done.commit_segments("i", [done.build_segment(INDEX)])
    assert [each.columns for each in done.list_indices()] == [("id",)]
