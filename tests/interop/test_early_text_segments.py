"""Forms of inverted indices between the releases that we have files of, laid out anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.text.segment import TextSegment, open_text_segment
from lance_core.io.memory_store import MemoryStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.base_paths import Place
from tests.text_indices import (
    CACHE_BYTES,
    held_by_all,
    occurrences,
    open_text_segments,
    rows_of,
    texts,
    write_indexed,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

Change = tuple[pa.Table, dict[str, str]]


def rewritten(
    path: Path, changes: dict[str, Callable[[pa.Table, dict[str, str]], Change]]
) -> TextSegment:
    """Open the index of a dataset with some files written anew, their rows and keys changed."""
    (segment,) = open_text_segments(path)
    store = MemoryStore()
    folder = path / segment.source.folder.path
    for file in folder.iterdir():
        with LanceFileReader.open_path(file) as reader:
            table, told = reader.read_all(), dict(reader.schema.metadata)
        table, told = changes.get(file.name, lambda *same: same)(table, told)
        plain = table.replace_schema_metadata(None)
        with LanceFileWriter(store, f"x/{file.name}", plain.schema) as writer:
            writer.write_batch(plain)
            for key, value in told.items():
                writer.add_schema_metadata(key, value)
    metadata = replace(segment.source.metadata, files=())
    return open_text_segment(Place(RangeScheduler(store), "x"), metadata, ByteCache(CACHE_BYTES))


@pytest.fixture(scope="module")
def first_format(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("first") / "d.lance"
    write_indexed(path, texts(400), with_position=True, format_version="1")
    return path


def as_table_of_tokens(path: Path) -> Callable[[pa.Table, dict[str, str]], Change]:
    (segment,) = open_text_segments(path)
    parts = list(segment.partitions[0].all_tokens())
    tokens = pa.concat_arrays([keys.cast(pa.string()) for keys, _ in parts])
    numbers = np.concatenate([each for _, each in parts])
    order = np.random.default_rng(3).permutation(len(numbers))
    columns = {"_token": tokens.take(order), "_token_id": pa.array(numbers[order], pa.uint32())}
    return lambda *_: (pa.table(columns), {})


def without_newer_keys(table: pa.Table, told: dict[str, str]) -> Change:
    return table.slice(0, 0), {key: told[key] for key in ("partitions", "params")}


def test_tables_of_tokens_and_postings_without_impacts_are_read(first_format: Path) -> None:
    segment = rewritten(
        first_format,
        {
            "metadata.lance": without_newer_keys,
            "part_0_tokens.lance": as_table_of_tokens(first_format),
            "part_0_invert.lance": lambda table, _: (table.drop_columns(["_impacts"]), {}),
            "part_0_docs.lance": lambda table, _: (table, {}),
        },
    )
    expected = occurrences(rows_of(first_format))
    assert held_by_all([segment]) == expected
    counts = [len(each) for rows in expected.values() for each in rows.values()]
    assert segment.total_tokens() == sum(counts)


def test_damaged_impacts_do_not_matter(first_format: Path) -> None:
    def damage(table: pa.Table, told: dict[str, str]) -> Change:
        at = table.schema.get_field_index("_impacts")
        changed = [[b"\xff"] * len(each) for each in table["_impacts"].to_pylist()]
        return table.set_column(at, "_impacts", pa.array(changed, table["_impacts"].type)), told

    segment = rewritten(first_format, {"part_0_invert.lance": damage})
    assert held_by_all([segment]) == occurrences(rows_of(first_format))


@pytest.mark.parametrize(
    "told",
    [
        {"format_version": "4"},
        {"format_version": "0"},
        {"posting_block_size": "64"},
        {"posting_tail_codec": "unknown"},
    ],
)
def test_forms_that_are_not_known_make_the_segment_unusable(
    first_format: Path, told: dict[str, str]
) -> None:
    with pytest.raises(UnusableSegmentError):
        rewritten(
            first_format, {"part_0_invert.lance": lambda table, own: (table, {**own, **told})}
        )


@pytest.mark.parametrize("told", ["", "{}", "[0, 0]", "[-1]", "[true]", '["0"]', "[1]"])
def test_partitions_that_cannot_be_are_told(first_format: Path, told: str) -> None:
    with pytest.raises(CorruptFileError):
        rewritten(
            first_format,
            {"metadata.lance": lambda table, own: (table, {**own, "partitions": told})},
        )


def changed_column(name: str, values: list[Any]) -> Callable[[pa.Table, dict[str, str]], Change]:
    def change(table: pa.Table, told: dict[str, str]) -> Change:
        own = values + table[name].to_pylist()[len(values) :]
        at = table.schema.get_field_index(name)
        return table.set_column(at, name, pa.array(own, table[name].type)), told

    return change


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("_length", [1 << 31]),
        ("_length", [0]),
        ("_posting", [[]]),
        ("_posting", [[b""] * 4]),
        ("_position", [[]]),
    ],
)
def test_postings_that_contradict_themselves_are_told(
    first_format: Path, name: str, values: list[Any]
) -> None:
    segment = rewritten(first_format, {"part_0_invert.lance": changed_column(name, values)})
    with pytest.raises(CorruptFileError):
        held_by_all([segment])
