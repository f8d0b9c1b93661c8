"""Inverted indices that several workers of pylance built, each its own fragments."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import Index, LanceOperation

from lance_core.errors import CorruptFileError
from tests.text_indices import PLAIN, held_by_all, occurrences, open_text_segments, rows_of, texts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

FRAGMENTS = (0, 1)
OPTIONS: dict[str, Any] = {**PLAIN, "with_position": True}
DETAILS = (
    "/lance.table.InvertedIndexDetails",
    b"\x0a\x06simple\x12\x09\x22English\x22\x18\x01\x20\x28\x28\x01\x48\x03\x50\x03\x60\x80\x01\x78\x02",
)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    table = pa.table({"t": pa.array(texts(300), pa.string())})
    return lance.write_dataset(table, str(tmp_path / "a.lance"), max_rows_per_file=150)


def built_by_workers(dataset: Any) -> str:
    """Let a worker for each fragment write into one folder, and return its name."""
    shared = str(uuid.uuid4())
    for fragment in FRAGMENTS:
        dataset.create_scalar_index(
            "t", "INVERTED", name="t_idx", fragment_ids=[fragment], index_uuid=shared, **OPTIONS
        )
    return shared


def commit(dataset: Any, shared: str) -> None:
    covered: Any = set(FRAGMENTS)
    entry = Index(shared, "t_idx", [0], 1, covered, 2, index_details=DETAILS)
    operation = LanceOperation.CreateIndex([entry], [])
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def check(path: Path) -> None:
    assert held_by_all(open_text_segments(path)) == occurrences(rows_of(path))


def test_what_they_wrote_into_one_folder_is_read_once_it_is_merged(
    dataset: Any, tmp_path: Path
) -> None:
    shared = built_by_workers(dataset)
    dataset.merge_index_metadata(shared, "INVERTED")
    commit(dataset, shared)
    check(tmp_path / "a.lance")


def test_what_is_not_merged_is_read_neither_here_nor_by_pylance(
    dataset: Any, tmp_path: Path
) -> None:
    commit(dataset, built_by_workers(dataset))
    with pytest.raises(Exception, match=r"tokens\.lance"):
        lance.dataset(dataset.uri).to_table(full_text_query="aw0")
    with pytest.raises(CorruptFileError, match=r"tokens.lance.*missing"):
        open_text_segments(tmp_path / "a.lance")


def test_segments_of_their_own_are_read(dataset: Any, tmp_path: Path) -> None:
    segments = [
        dataset.create_index_uncommitted(
            "t", "INVERTED", name="t_idx", fragment_ids=[fragment], **OPTIONS
        )
        for fragment in FRAGMENTS
    ]
    dataset.commit_existing_index_segments("t_idx", "t", segments)
    assert len(open_text_segments(tmp_path / "a.lance")) == len(FRAGMENTS)
    check(tmp_path / "a.lance")
