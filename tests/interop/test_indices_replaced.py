"""Segments committed in place of a whole index, with properties that pylance reads."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.operations.commit_segments import commit_segments
from lance_core.operations.new_index import NewIndex

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NUM_ROWS = 400


@pytest.fixture
def dataset(tmp_path: Path) -> lance_core.Dataset:
    rows = pa.table({"id": np.arange(NUM_ROWS), "other": np.arange(NUM_ROWS)})
    lance.write_dataset(rows, str(tmp_path / "a"), max_rows_per_file=100)
    return lance_core.open_dataset(tmp_path / "a").create_index("id", "BTREE", "i")


def test_all_segments_go_whatever_their_kind_and_coverage(dataset: lance_core.Dataset) -> None:
    built = dataset.build_segment(NewIndex("i", "id", "BITMAP"), [1, 2])
    with pytest.raises(InvalidRequestError, match=r"\[0, 3\] too"):
        commit_segments(dataset.snapshot, "i", [built])
    given = {"pipeline.job_id": "j", "pipeline.kind": "build-index"}
    after = commit_segments(dataset.snapshot, "i", [built], replace_all=True, properties=given)
    theirs = lance.dataset(dataset.uri)
    assert theirs.version == after.version == dataset.version + 1
    transaction = theirs.read_transaction(after.version)
    assert transaction is not None
    assert transaction.transaction_properties == given
    (index,) = theirs.describe_indices()
    assert index.index_type.upper() == "BITMAP"
    assert theirs.to_table(filter="id = 150")["id"].to_pylist() == [150]
    assert theirs.to_table(filter="id = 7")["id"].to_pylist() == [7]


def test_an_index_on_another_column_is_not_replaced(dataset: lance_core.Dataset) -> None:
    built = dataset.build_segment(NewIndex("i", "other", "BTREE"))
    with pytest.raises(InvalidRequestError, match="another column"):
        commit_segments(dataset.snapshot, "i", [built], replace_all=True)


def test_of_several_that_commit_the_same_only_the_first_does(dataset: lance_core.Dataset) -> None:
    built = dataset.build_segment(NewIndex("j", "other", "BTREE"))
    own = str(uuid.uuid4())
    first = commit_segments(dataset.snapshot, "j", [built], transaction_uuid=own)
    dataset.append(pa.table({"id": [1000], "other": [1000]}))
    again = commit_segments(dataset.snapshot, "j", [built], transaction_uuid=own)
    assert again.version == first.version == dataset.version + 1
    assert lance.dataset(dataset.uri).version == dataset.version + 2
