"""Inverted indices that we built: pylance searches them as its own, which hold the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import FullTextOperator, MatchQuery, PhraseQuery

import lance_core
from lance_core.errors import InvalidRequestError
from tests.index_contents import index_contents
from tests.text_indices import held_by_all, occurrences, open_text_segments, rows_of, texts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

CODE = ["getUserName foo_bar a::b->c", "x = HTML2JSON(y)", None, "int main() { return 0; }"]
WORDS = ["die Häuser straße Fox", "Der Fuchs 3.14 läuft", None, "", "œuvre ½ 你好"]
LISTS = [["red fox", None, "blue dog"], None, [], ["the"], [""], ["red", "fox fox"]]


def long_texts(num: int) -> list[str | None]:
    """Return texts of up to some thousand words, some of them often."""
    rng = np.random.default_rng(5)
    weights = 1 / np.arange(1, 501)
    words = [f"w{number}" for number in range(500)]
    sizes = rng.lognormal(3, 1.5, num).astype(int)
    return [" ".join(rng.choice(words, size, p=weights / weights.sum())) for size in sizes]


CASES: list[tuple[list[Any], pa.DataType, dict[str, Any]]] = [
    (texts(1500), pa.string(), {}),
    (texts(1500), pa.string(), {"with_position": True}),
    (long_texts(1200), pa.string(), {"with_position": True, "block_size": 256}),
    (long_texts(1200), pa.string(), {"with_position": True, "format_version": 1}),
    (WORDS * 30, pa.string(), {"format_version": "v1"}),
    (long_texts(300), pa.string(), {"format_version": 3, "max_token_length": None}),
    (WORDS * 30, pa.large_string(), {"language": "German", "with_position": True}),
    (
        WORDS * 30,
        pa.string(),
        {"base_tokenizer": "whitespace", "custom_stop_words": ["fox"], "lower_case": False},
    ),
    (WORDS * 30, pa.string(), {"base_tokenizer": "ngram", "min_ngram_length": 2}),
    (WORDS * 30, pa.string(), {"base_tokenizer": "raw", "with_position": True}),
    (
        CODE * 30,
        pa.string(),
        {
            "base_tokenizer": "code",
            "split_identifiers": True,
            "index_operators": True,
            "with_position": True,
        },
    ),
    (CODE * 30, pa.string(), {"base_tokenizer": "code", "preserve_original": False}),
    (LISTS * 30, pa.list_(pa.string()), {"with_position": True}),
    (LISTS * 30, pa.large_list(pa.large_string()), {}),
    ([None, ""], pa.string(), {}),
]


def write(folder: Path, column: list[Any], kind: pa.DataType) -> None:
    table = pa.table({"t": pa.array(column, kind), "id": pa.array(range(len(column)))})
    lance.write_dataset(table, str(folder), max_rows_per_file=500)


@pytest.mark.parametrize(("column", "kind", "parameters"), CASES)
def test_files_hold_what_those_of_pylance_do_byte_for_byte(
    tmp_path: Path, column: list[Any], kind: pa.DataType, parameters: dict[str, Any]
) -> None:
    write(tmp_path, column, kind)
    theirs = lance.dataset(str(tmp_path))
    theirs.create_scalar_index("t", "INVERTED", "theirs", num_workers=1, **parameters)
    dataset = lance_core.open_dataset(tmp_path).create_index("t", "FTS", "ours", **parameters)
    expected, found = (index_contents(tmp_path, name) for name in ("theirs", "ours"))
    assert found.keys() == expected.keys()
    for file, (table, metadata, _) in expected.items():
        assert found[file][1] == metadata
        for name in table.column_names:
            if name != "_token_fst_bytes":  # ours share no ends, so that the bytes differ
                assert found[file][0][name].equals(table[name]), (file, name)
    described = {each.name: each for each in dataset.snapshot.indices}
    assert described["ours"].details == described["theirs"].details
    assert described["ours"].index_version == described["theirs"].index_version
    assert described["ours"].fragment_bitmap == described["theirs"].fragment_bitmap
    own_rows, their_rows = (
        held_by_all(open_text_segments(tmp_path, name)) for name in ("ours", "theirs")
    )
    assert own_rows == their_rows


def scores(dataset: lance.LanceDataset, query: Any) -> list[tuple[int, float]]:
    """Return row ids and scores, best first, equals by row id."""
    found = dataset.to_table(columns=["_rowid", "_score"], full_text_query=query, with_row_id=True)
    pairs = zip(found["_rowid"].to_pylist(), found["_score"].to_pylist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


QUERIES: list[Any] = [
    MatchQuery("aw0", "t"),
    MatchQuery("aw0 bw1 zz", "t"),
    MatchQuery("often rare cw2 dw3 kiw399", "t"),
    MatchQuery("aaw0 baw1 caw2", "t"),
    MatchQuery("aaw0 baw1", "t", operator=FullTextOperator.AND),
    MatchQuery("baw", "t", fuzziness=1),
    MatchQuery("aaw1 cbw2", "t", fuzziness=2, prefix_length=1, max_expansions=10),
    PhraseQuery("aaw0 baw1", "t"),
    PhraseQuery("often rare often", "t"),
    PhraseQuery("baw1 aaw0", "t", slop=3),
]


@pytest.mark.parametrize("block_size", [128, 256])
def test_pylance_scores_bit_for_bit_as_on_an_index_of_its_own(
    tmp_path: Path, block_size: int
) -> None:
    column = texts(2500)
    parameters: dict[str, Any] = {"with_position": True, "block_size": block_size, "stem": False}
    for name in ("ours", "theirs"):
        write(tmp_path / name, column, pa.string())
    theirs = lance.dataset(str(tmp_path / "theirs"))
    theirs.create_scalar_index("t", "INVERTED", num_workers=1, **parameters)
    lance_core.open_dataset(tmp_path / "ours").create_index("t", "INVERTED", **parameters)
    ours = lance.dataset(str(tmp_path / "ours"))
    for query in QUERIES:
        expected = scores(theirs, query)
        assert scores(ours, query) == expected
    assert "MatchQuery" in ours.scanner(full_text_query=QUERIES[1]).explain_plan()


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("format_version", [1, 2])
def test_tables_of_older_storage_versions_are_indexed_too(
    tmp_path: Path, version: Any, format_version: int
) -> None:
    table = pa.table({"t": pa.array(texts(600), pa.string())})
    lance.write_dataset(table, str(tmp_path), data_storage_version=version)
    parameters: dict[str, Any] = {"with_position": True, "stem": False, "remove_stop_words": False}
    dataset = lance_core.open_dataset(tmp_path)
    dataset.create_index("t", "FTS", format_version=format_version, **parameters)
    expected = occurrences(rows_of(tmp_path))
    assert held_by_all(open_text_segments(tmp_path)) == expected
    found = scores(lance.dataset(str(tmp_path)), MatchQuery("caw2", "t"))
    assert {row for row, _ in found} == expected["caw2"].keys()


def test_what_does_not_fit_in_memory_goes_to_disk_and_to_more_partitions(tmp_path: Path) -> None:
    column = texts(3000)
    write(tmp_path, column, pa.string())
    dataset = lance_core.open_dataset(tmp_path)
    plain: dict[str, Any] = {"stem": False, "remove_stop_words": False, "with_position": True}
    whole = dataset.create_index("t", "INVERTED", "whole", **plain)
    whole.create_index("t", "INVERTED", "spilled", memory_bytes=1 << 20, **plain)
    small = dataset.create_index("t", "INVERTED", "small", memory_bytes=1 << 17, **plain)
    expected = occurrences(rows_of(tmp_path))
    (one,), (spilled,), (several,) = (
        open_text_segments(tmp_path, name) for name in ("whole", "spilled", "small")
    )
    assert len(one.partitions) == 1
    assert len(spilled.partitions) == 1
    assert len(several.partitions) > 1
    contents = [index_contents(tmp_path, name) for name in ("whole", "spilled")]
    assert contents[0] == contents[1]
    assert held_by_all([one]) == expected
    assert held_by_all([several]) == expected
    theirs = lance.dataset(str(tmp_path))
    small.drop_index("whole").drop_index("spilled")
    theirs = lance.dataset(str(tmp_path))
    found = scores(theirs, MatchQuery("aaw0 caw2", "t"))
    assert {row for row, _ in found} == expected["aaw0"].keys() | expected["caw2"].keys()


@pytest.mark.parametrize(
    ("column", "parameters", "complaint"),
    [
        ("id", {}, "columns of texts"),
        ("t", {"format_version": 4}, "1, 2 or 3, not 4"),
        ("t", {"format_version": True}, "1, 2 or 3, not True"),
        ("t", {"format_version": 2, "block_size": 256}, "take 3"),
        ("t", {"format_version": "v2", "base_tokenizer": "code"}, "take 3"),
        ("t", {"zone_size": 3}, "zone_size"),
        ("t", {"language": "english"}, "unsupported language"),
    ],
)
def test_what_an_inverted_index_cannot_be_is_refused(
    tmp_path: Path, column: str, parameters: dict[str, Any], complaint: str
) -> None:
    write(tmp_path, WORDS, pa.string())
    with pytest.raises(InvalidRequestError, match=complaint):
        lance_core.open_dataset(tmp_path).create_index(column, "INVERTED", **parameters)
