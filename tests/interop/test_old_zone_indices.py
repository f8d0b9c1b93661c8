"""Zone-based and n-gram indices of older releases: no row is missed, wherever these differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core import open_dataset
from lance_core.expr.index_query import AnyOf, Between, ContainsAll, IsNull
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.scalar.zone_segment import ZoneSegment
from tests.opened_scalar import ask, names, open_segments

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import OldDataset

pytestmark = pytest.mark.interop

COLUMNS = ["number", "float", "label"]
ROWS_OF_FRAGMENTS = {0: 175, 1: 175, 2: 100}


def truth(folder: Path) -> pa.Table:
    return pq.read_table(folder.with_suffix("").with_suffix(".truth.parquet"))


def rows_where(table: pa.Table, column: str, passes: Any) -> set[int]:
    pairs = zip(table["_rowaddr"].to_pylist(), table[column].to_pylist(), strict=True)
    return {row for row, value in pairs if passes(value)}


@pytest.mark.parametrize("kind", ["map", "filter"])
@pytest.mark.parametrize("column", COLUMNS)
def test_rows_are_found_in_zones_without_a_set_of_nulls(
    old_dataset: OldDataset, kind: str, column: str
) -> None:
    folder = old_dataset("8.0.0", "zones")
    table = truth(folder)
    (segment,) = open_segments(folder, f"{kind} of {column}")
    assert isinstance(segment, ZoneSegment)
    assert not segment.may_lack_rows(ROWS_OF_FRAGMENTS)
    for value in {each for each in table[column].to_pylist() if str(each) not in {"None", "nan"}}:
        wanted = pa.array([value], table.schema.field(column).type)
        found = set(names(ask(segment, AnyOf(wanted)).possible))
        assert found >= rows_where(table, column, lambda each, value=value: each == value)
        if kind == "map":  # NaNs stand behind all numbers
            behind = set(names(ask(segment, Between(wanted[0], None)).possible))
            assert behind >= rows_where(
                table, column, lambda each, value=value: each is not None and not each < value
            )
    nulls = ask(segment, IsNull())
    assert not segment.knows_nulls
    assert not nulls.is_exact
    assert set(names(nulls.possible)) >= rows_where(table, column, lambda each: each is None)


@pytest.mark.parametrize("kind", ["map", "filter"])
@pytest.mark.parametrize("column", COLUMNS)
def test_zones_in_wrong_places_are_noticed(old_dataset: OldDataset, kind: str, column: str) -> None:
    (segment,) = open_segments(old_dataset("0.39.0", "zones"), f"{kind} of {column}")
    assert isinstance(segment, ZoneSegment)
    assert segment.may_lack_rows(ROWS_OF_FRAGMENTS)
    with pytest.raises(UnusableSegmentError, match="rebuild"):
        open_segments(old_dataset("1.0.4", "zones"), f"{kind} of {column}")


@pytest.mark.parametrize("release", ["0.39.0", "1.0.4", "8.0.0"])
def test_texts_are_found_however_a_release_folded_them(
    old_dataset: OldDataset, release: str
) -> None:
    folder = old_dataset(release, "zones")
    table = truth(folder)
    (segment,) = open_segments(folder, "trigrams of text")
    for part in ("Quick", "Straße", "№12 fox", "x-ray brown", "ƀoo Qui", "über ƀoo", "00123"):
        expected = rows_where(
            table, "text", lambda each, part=part: each is not None and part in each
        )
        assert set(names(ask(segment, ContainsAll((part,))).possible)) >= expected


@pytest.mark.parametrize("release", ["1.0.4", "10.0.0"])
def test_a_set_of_nulls_counts_where_the_file_has_one(
    old_dataset: OldDataset, release: str
) -> None:
    folder = old_dataset(release, "scalar")
    table = truth(folder)
    (segment,) = open_segments(folder, "price_idx")
    assert segment.knows_nulls is (release == "10.0.0")
    nulls = set(names(ask(segment, IsNull()).possible))
    covered = {row for row in table["_rowid"].to_pylist() if row >> 32 < 2}
    assert len(covered) > 500
    pairs = zip(table["_rowid"].to_pylist(), table["price"].to_pylist(), strict=True)
    assert nulls & covered == {row for row, price in pairs if price is None} & covered
    whole = ask(segment, Between(None, None))
    assert set(names(whole.possible)) >= covered - nulls


@pytest.mark.parametrize("release", ["0.39.0", "1.0.4", "8.0.0"])
def test_filters_find_what_a_scan_of_pylance_finds(old_dataset: OldDataset, release: str) -> None:
    folder = str(old_dataset(release, "zones"))
    own, other = open_dataset(folder), lance.dataset(folder)
    for text in (
        "number = 91",
        "number < 30 OR number IN (93, 95)",
        "number NOT IN (91, 92)",
        "number IS NULL",
        "float > 5",
        "float <= -10 AND NOT label LIKE 'text 02%'",
        "label = 'text 091 é' OR float = 0.0",
        "contains(text, '№12 fox') AND contains(text, 'ƀoo')",
    ):
        expected = other.scanner(filter=text, use_scalar_index=False).to_table()["id"].to_pylist()
        assert own.scan(["id"], filter=text).read_all()["id"].to_pylist() == expected, text
