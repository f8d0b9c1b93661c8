"""NGRAM of pylance: no row with a text in it is missed, and few others are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.cache.byte_cache import ByteCache
from lance_core.expr.index_query import AnyOf, ContainsAll, IsNull, StartsWith
from lance_core.index.scalar.trigrams import trigrams
from lance_core.io.metering import metered
from tests.opened_scalar import CACHE_BYTES, ask, names, open_segments

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.interop

FormatVersion = Literal["2.0", "2.1", "2.2"]
NUM_ROWS = 3_000
WORDS = ["Quick", "brown", "fox", "jumps", "über", "lazy", "Straße", "№12", "x-ray", "ab", "Ωmega"]


class Texts:
    """A table of texts with an NGRAM, its live rows, and the segment as we open it."""

    def __init__(self, folder: Path, version: FormatVersion, *, stable: bool) -> None:
        generator = np.random.default_rng(4)
        texts = [" ".join(generator.choice(WORDS, 4)) + f" {n:05}" for n in range(NUM_ROWS)]
        rows = pa.table({"id": np.arange(NUM_ROWS), "text": [*texts[:-100], *[None] * 100]})
        dataset = lance.write_dataset(
            rows,
            str(folder),
            max_rows_per_file=1_100,
            data_storage_version=version,
            enable_stable_row_ids=stable,
        )
        dataset.delete("id % 5 = 1")
        if stable:
            dataset.update({"id": "id + 1000000"}, where="id % 5 = 2")
        dataset.create_scalar_index("text", "NGRAM")
        live = lance.dataset(str(folder)).to_table(["text"], with_row_id=True)
        self.folder = folder
        self.row_ids = live["_rowid"].to_pylist()
        self.texts = live["text"].to_pylist()
        (self.segment,) = open_segments(folder)

    def found(self, query: ContainsAll | StartsWith) -> list[int]:
        return names(ask(self.segment, query).possible)

    def with_all(self, *parts: str) -> list[int]:
        pairs = zip(self.row_ids, self.texts, strict=True)
        return sorted(r for r, t in pairs if t is not None and all(p in t for p in parts))

    def with_trigrams_of(self, part: str) -> list[int]:
        wanted = set(trigrams(part).tolist())
        pairs = zip(self.row_ids, self.texts, strict=True)
        return sorted(r for r, t in pairs if t is not None and wanted <= set(trigrams(t).tolist()))


@pytest.fixture(
    scope="module",
    params=[("2.0", False), ("2.1", True), ("2.2", False)],
    ids=["2.0", "ids", "2.2"],
)
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Texts:
    version, stable = request.param
    return Texts(tmp_path_factory.mktemp("texts") / "dataset.lance", version, stable=stable)


def test_rows_are_named_by_their_ids(table: Texts) -> None:
    assert table.segment.names_rows_by == "row_id"
    assert not table.segment.knows_nulls


@pytest.mark.parametrize(
    "part",
    ["Quick", "own f", "Straße", "über l", "№12 brown", "x-ray", "02999", "00017", "k brown fox j"],
)
def test_no_row_with_a_text_in_it_is_missed(table: Texts, part: str) -> None:
    expected = table.with_all(part)
    found = table.found(ContainsAll((part,)))
    assert set(found) >= set(expected)
    assert found == table.with_trigrams_of(part)


def test_parts_of_random_texts_are_found_in_these(table: Texts) -> None:
    generator = np.random.default_rng(8)
    for _ in range(100):
        text = str(generator.choice([each for each in table.texts if each is not None]))
        start = int(generator.integers(len(text) - 6))
        parts = (text[start : start + 6], text[-4:])
        if table.segment.supports(ContainsAll(parts)):
            assert set(table.found(ContainsAll(parts))) >= set(table.with_all(*parts))


def test_several_parts_and_prefixes_narrow_further(table: Texts) -> None:
    both = table.found(ContainsAll(("Quick", "lazy")))
    assert len(both) < len(table.found(ContainsAll(("Quick",))))
    assert set(both) >= set(table.with_all("Quick", "lazy"))
    started = table.found(StartsWith(pa.scalar("Quick br"), is_exact=True))
    assert set(started) >= {
        row
        for row, text in zip(table.row_ids, table.texts, strict=True)
        if text is not None and text.startswith("Quick br")
    }


def test_a_trigram_that_occurs_nowhere_finds_exactly_nothing(table: Texts) -> None:
    answer = ask(table.segment, ContainsAll(("Quick", "zzz")))
    assert answer.is_exact
    assert names(answer.possible) == []


def test_queries_without_a_trigram_are_not_supported(table: Texts) -> None:
    for query in (
        ContainsAll(("ab",)),
        ContainsAll(("a-b", "Ωμέγα", "")),
        ContainsAll(()),
        StartsWith(pa.scalar("x-"), is_exact=True),
        AnyOf(pa.array(["Quick brown"])),
        IsNull(),
    ):
        assert not table.segment.supports(query)
    assert table.segment.supports(ContainsAll(("a-b", "Quick")))


def test_only_the_postings_asked_for_are_read_and_only_once(table: Texts) -> None:
    cache = ByteCache(CACHE_BYTES)
    (segment,) = open_segments(table.folder, cache=cache)
    size = sum(file.stat().st_size for file in table.folder.glob("_indices/*/*"))

    def bytes_read(part: str) -> int:
        with metered() as meter:
            ask(segment, ContainsAll((part,)))
        return meter.bytes_read

    assert 0 < bytes_read("00017") < size / 3
    assert bytes_read("00017") == 0
    (again,) = open_segments(table.folder, cache=cache)
    assert again is segment
    before = segment.nbytes
    ask(segment, ContainsAll(("Quick",)))
    assert before <= segment.nbytes < 2 * size
