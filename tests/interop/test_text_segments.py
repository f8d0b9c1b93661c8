"""Segments of inverted indices, of every generation, against the texts that they were made of."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import MatchQuery

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import InvalidRequestError
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.index.text.fst_write import fst_bytes
from lance_core.index.text.rounded_lengths import rounded_lengths
from lance_core.index.text.tokenizer import Tokenizer
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.kernels.warm import warm_kernels
from tests.kernel_signatures import num_signatures
from tests.text_indices import (
    CACHE_BYTES,
    held_by,
    held_by_all,
    occurrences,
    open_text_segments,
    rows_of,
    texts,
    without_positions,
    write_indexed,
)

if TYPE_CHECKING:
    from lance_core.index.text.segment import TextSegment
    from tests.interop.conftest import OldDataset

pytestmark = pytest.mark.interop

FORMATS: dict[str, dict[str, Any]] = {
    "1": {"format_version": "1"},
    "2": {"format_version": "2"},
    "3 with 128": {"format_version": "3"},
    "3 with 256": {"block_size": 256},
}
NUM_ROWS = 1200

Written = Callable[[str, bool], Path]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Return a function to datasets with an index of a format, with positions or without."""

    @cache
    def write(form: str, with_position: bool) -> Path:
        path: Path = tmp_path_factory.mktemp("texts") / "d.lance"
        write_indexed(path, texts(NUM_ROWS), with_position=with_position, **FORMATS[form])
        return path

    return write


@pytest.mark.parametrize("with_position", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_a_segment_holds_the_words_of_every_text(
    written: Written, form: str, with_position: bool
) -> None:
    path = written(form, with_position)
    (segment,) = open_text_segments(path)
    expected = occurrences(rows_of(path))
    assert segment.has_positions == with_position == segment.parameters.with_position
    held = held_by_all([segment])
    assert held == (expected if with_position else without_positions(expected))
    assert max(len(rows) for rows in held.values()) > 3 * segment.partitions[0].block_size


@pytest.mark.parametrize("form", FORMATS)
def test_documents_are_the_texts_that_have_words(written: Written, form: str) -> None:
    path = written(form, False)
    (segment,) = open_text_segments(path)
    (partition,) = segment.partitions
    lengths = {row: len((text or "").split()) for row, text in rows_of(path).items()}
    expected = {row: length for row, length in lengths.items() if length > 0}
    some = np.array([5, 3, 1000], np.uint32)
    found = partition.documents.row_ids_of(some)  # before all of them are read
    rows = partition.documents.row_ids()
    assert found.tolist() == rows[some].tolist()
    exact = partition.documents.lengths()
    assert dict(zip(rows.tolist(), exact.tolist(), strict=True)) == expected
    assert segment.num_docs == len(expected) == len(partition.documents)
    assert segment.total_tokens() == sum(expected.values())
    is_rounded = partition.block_size == 256
    scoring = rounded_lengths(exact) if is_rounded else exact
    assert partition.scoring_lengths().tolist() == scoring.tolist()
    assert (scoring != exact).any() == is_rounded


def test_segments_that_pylance_merged_hold_all_rows_in_several_partitions(tmp_path: Path) -> None:
    path = tmp_path / "d.lance"
    write_indexed(path, texts(400), with_position=True)
    for seed in (2, 3):
        table = pa.table({"t": pa.array(texts(300, seed), pa.string())})
        dataset = lance.write_dataset(table, str(path), mode="append")
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    many = open_text_segments(path)
    assert len(many) == 3
    assert held_by_all(many) == occurrences(rows_of(path))
    table = pa.table({"t": pa.array(texts(300, 4), pa.string())})
    dataset = lance.write_dataset(table, str(path), mode="append")
    dataset.optimize.optimize_indices(num_indices_to_merge=2)
    merged = open_text_segments(path)
    assert [len(each.partitions) for each in merged] == [1, 2]
    assert held_by_all(merged) == occurrences(rows_of(path))


def test_positions_are_refused_where_there_are_none(written: Written) -> None:
    (segment,) = open_text_segments(written("2", False))
    with pytest.raises(InvalidRequestError, match="with_position=True"):
        segment.partitions[0].positions([0])


def test_rows_of_lists_have_a_document_for_each_element(tmp_path: Path) -> None:
    path = tmp_path / "d.lance"
    lists = pa.array([["red fox", None, "blue fox"], None, [], ["green"]], pa.list_(pa.string()))
    dataset = lance.write_dataset(pa.table({"t": lists}), str(path))
    dataset.create_scalar_index("t", "INVERTED", stem=False)
    (segment,) = open_text_segments(path)
    (partition,) = segment.partitions
    assert not partition.documents.has_elements
    assert held_by(partition) == {
        "red": {0: [0]},
        "fox": {0: [0, 1]},
        "blue": {0: [0]},
        "green": {3: [0]},
    }


def old_rows(path: Path, segment: TextSegment) -> dict[int, str | None]:
    """Return texts of old datasets as words that are tokens."""
    tokens_of = Tokenizer(segment.parameters).tokens
    return {
        row: " ".join(token.text for token in tokens_of(text or ""))
        for row, text in rows_of(path, "text").items()
    }


@pytest.mark.parametrize("release", ["0.20.0", "1.0.4", "10.0.0"])
def test_segments_of_old_releases_hold_the_words_of_every_text(
    old_dataset: OldDataset, release: str
) -> None:
    path = old_dataset(release, "scalar")
    (segment,) = open_text_segments(path, "text_idx")
    assert segment.has_positions == (release == "0.20.0")
    held = held_by_all([segment])
    documents = segment.partitions[0].documents.row_ids().tolist()
    live = {row: text for row, text in old_rows(path, segment).items() if row in documents}
    expected = occurrences(live)
    assert len(live) > 400
    known = {
        token: {row: positions for row, positions in rows.items() if row in live}
        for token, rows in held.items()
    }
    assert known == (expected if segment.has_positions else without_positions(expected))


def test_no_kernel_is_compiled_once_all_are_warm(written: Written) -> None:
    paths = [written(form, True) for form in FORMATS]
    warm_kernels()
    before = num_signatures()
    for path in paths:
        (segment,) = open_text_segments(path)
        (partition,) = segment.partitions
        (texts_near, numbers) = partition.expand("often", 1, prefix_length=1, most=9)
        assert texts_near == ["often"]
        assert partition.token_ids(["often", "never"]).tolist() == [numbers[0], -1]
        (postings,) = partition.postings(numbers.tolist())
        (positions,) = partition.positions(numbers.tolist())
        assert postings.frequencies.tolist() == [300] == np.diff(positions.starts).tolist()
    assert num_signatures() == before


def test_only_the_postings_that_are_asked_for_are_read(tmp_path: Path) -> None:
    path = tmp_path / "d.lance"
    write_indexed(path, texts(6000), with_position=True)
    (file,) = path.glob("_indices/*/part_0_invert.lance")
    store = CountingStore(open_store(str(path)))
    cache = ByteCache(CACHE_BYTES)
    (segment,) = open_text_segments(store, cache=cache)
    (partition,) = segment.partitions
    (rare,) = partition.token_ids(["rare"]).tolist()
    store.reset()
    assert len(partition.postings([rare, rare])[0]) == 1
    assert 0 < store.bytes_read < file.stat().st_size / 10
    (again,) = open_text_segments(store, cache=cache)
    assert again is segment
    store.reset()
    partition.postings([rare])
    assert store.bytes_read == 0


def test_pylance_looks_tokens_up_in_dictionaries_of_ours(
    old_dataset: OldDataset, tmp_path: Path
) -> None:
    path = tmp_path / "d.lance"
    shutil.copytree(old_dataset("1.0.4", "scalar"), path)  # its manifest tells no sizes of files
    (segment,) = open_text_segments(path, "text_idx")
    parts = list(segment.partitions[0].all_tokens())
    tokens = pa.concat_arrays([keys for keys, _ in parts])
    expected = answers(path, tokens.to_pylist())
    (file,) = path.glob("_indices/*/part_0_tokens.lance")
    with LanceFileReader.open_path(file) as reader:
        stored = reader.read_all()
    fst = fst_bytes(tokens, np.concatenate([numbers for _, numbers in parts]))
    columns = [pa.array([fst.tobytes()], pa.large_binary()), *stored.columns[1:]]
    ours = pa.table(columns, stored.schema.remove_metadata())
    with LanceFileWriter.open_path(file, ours.schema) as writer:
        writer.write_batch(ours)
    assert answers(path, tokens.to_pylist()) == expected
    assert all(len(rows) > 50 for rows in expected)


def answers(path: Path, tokens: list[str]) -> list[list[int]]:
    """Return the rows that pylance finds for each token."""
    dataset = lance.dataset(str(path))
    return [
        sorted(
            dataset.to_table(
                columns=["_score"], with_row_id=True, full_text_query=MatchQuery(token, "text")
            )["_rowid"].to_pylist()
        )
        for token in tokens
    ]
