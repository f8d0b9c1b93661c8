"""Fragments that were taken out of an inverted index, though its files still hold their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import Index, LanceOperation
from pyroaring import BitMap

from lance_core import open_dataset
from lance_core.errors import CorruptFileError
from lance_core.file import LanceFileReader, LanceFileWriter
from lance_core.index.text.queries import MatchQuery, PhraseQuery
from tests.text_indices import PLAIN, open_text_segments

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

DETAILS = ("/lance.table.InvertedIndexDetails", b"")


def index_without(path: Path, deleted: bytes | None) -> Any:
    """Write nine rows in three fragments, and an index that says which it has no more."""
    table = pa.table({"id": range(9), "t": ["red fox"] * 9})
    dataset = lance.write_dataset(table, str(path), max_rows_per_file=3)
    dataset.create_scalar_index("t", "INVERTED", with_position=True, **PLAIN)
    dataset.drop_index("t_idx")  # its files stay, and their sizes are recorded no more
    (file,) = path.glob("_indices/*/metadata.lance")
    metadata = LanceFileReader.open_path(file).schema.metadata
    schema = pa.schema([pa.field("deleted_fragments", pa.binary())], metadata)
    file.unlink()
    with LanceFileWriter.open_path(file, schema) as writer:
        writer.write_batch(pa.table([pa.array([deleted], pa.binary())], schema=schema))
    fragments: Any = {0, 1, 2}
    entry = Index(file.parent.name, "t_idx", [1], 1, fragments, 2, index_details=DETAILS)
    operation = LanceOperation.CreateIndex([entry], [])
    return lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def test_rows_of_fragments_that_were_taken_out_are_not_found(tmp_path: Path) -> None:
    theirs = index_without(tmp_path / "t.lance", BitMap([1]).serialize())
    (segment,) = open_text_segments(tmp_path / "t.lance")
    assert segment.deleted_fragments == BitMap([1])
    expected = [0, 1, 2, 6, 7, 8]
    found = theirs.to_table(full_text_query="fox", fast_search=True)["id"].to_pylist()
    assert sorted(found) == expected
    dataset = open_dataset(tmp_path / "t.lance")
    for query in (MatchQuery("fox", "t"), PhraseQuery("red fox", "t")):
        for k in (9, None):
            rows = dataset.search_text(query, k, fast_search=True)
            assert sorted(rows["id"].to_pylist()) == expected
            few = dataset.search_text(query, k, fast_search=True, filter="id > 1 and id < 7")
            assert sorted(few["id"].to_pylist()) == [2, 6]


@pytest.mark.parametrize(("deleted", "complaint"), [(None, "null"), (b"\x01\x02", "")])
def test_a_bitmap_of_them_that_is_none_is_told(
    tmp_path: Path, deleted: bytes | None, complaint: str
) -> None:
    index_without(tmp_path / "t.lance", deleted)
    with pytest.raises(CorruptFileError, match=rf"metadata\.lance.*{complaint}"):
        open_dataset(tmp_path / "t.lance").search_text("fox")
