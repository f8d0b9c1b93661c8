"""ZONEMAP and BLOOMFILTER of pylance: no row is missed, and zones without one are left out."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.indices import IndexConfig

from lance_core.expr.index_query import AnyOf, Between, IsNull, StartsWith
from tests.opened_scalar import ask, names, open_segments

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.expr.index_query import LeafQuery
    from lance_core.index.scalar.segment import ScalarSegment

pytestmark = pytest.mark.interop

NUM_ROWS, ROWS_PER_ZONE = 900, 40
NO_VALUES = slice(400, 500)  # more than a zone has


def _columns() -> dict[str, pa.Array]:
    generator = np.random.default_rng(11)
    number = np.sort(generator.integers(0, 250, NUM_ROWS))  # so that zones differ
    is_null = generator.random(NUM_ROWS) < 0.05
    is_null[NO_VALUES] = True
    mask = pa.array(is_null)

    def of(values: Any, kind: pa.DataType) -> pa.Array:
        return pc.if_else(mask, pa.scalar(None, kind), pa.array(values, kind))

    texts = [f"text {n:03} é" * (1 + n % 3) for n in number]
    times = {
        "date32": pa.date32(),
        "time32": pa.time32("s"),
        "time64": pa.time64("ns"),
        "timestamp": pa.timestamp("us"),
        "zoned": pa.timestamp("ns", tz="Europe/Berlin"),
        "duration": pa.duration("ms"),
    }
    integers = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    signed = number - 125
    plain = {
        name: of(
            number // 2 if name == "int8" or name.startswith("u") else signed,
            pa.type_for_alias(name),
        )
        for name in integers
    }
    return {
        **plain,
        **{name: of((number * 100).tolist(), kind) for name, kind in times.items()},
        "date64": of((number * 86_400_000).tolist(), pa.date64()),
        **{f"float{bits}": _floats(signed, bits, is_null) for bits in (16, 32, 64)},
        "bool": of(number > 125, pa.bool_()),
        "decimal128": of([Decimal(int(n)) / 4 for n in signed], pa.decimal128(12, 2)),
        "decimal256": of([Decimal(int(n)) * 10**40 for n in signed], pa.decimal256(60, 2)),
        "string": of(texts, pa.string()),
        "large_string": of(texts, pa.large_string()),
        "binary": of([text.encode() + b"\xff" for text in texts], pa.binary()),
        "large_binary": of([text.encode() for text in texts], pa.large_binary()),
    }


def _floats(numbers: np.ndarray, bits: int, is_null: np.ndarray) -> pa.Array:
    """Return numbers with both zeros and NaNs of both signs, also zones of nothing but NaNs."""
    generator = np.random.default_rng(bits)
    values = numbers.astype(f"f{bits // 8}")
    values[numbers == 0] = generator.choice([0.0, -0.0], (numbers == 0).sum())
    for sign in (1.0, -1.0):
        values[generator.random(NUM_ROWS) < 0.02] = np.copysign(np.nan, sign)
    values[600:700] = np.nan
    values[[0, -1]] = [-np.inf, np.inf]
    return pa.array(values, mask=is_null)


COLUMNS = _columns()
BLOOM_COLUMNS = [
    name
    for name in COLUMNS
    if name not in {"float16", "bool", "decimal128", "decimal256", "duration"}
]


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> IndexedTable:
    folder: Path = tmp_path_factory.mktemp("zones") / "dataset.lance"
    rows = pa.table({"id": np.arange(NUM_ROWS), **COLUMNS})
    dataset = lance.write_dataset(
        rows, str(folder), max_rows_per_file=350, data_storage_version=request.param
    )
    dataset.delete("id % 9 = 4 OR id BETWEEN 100 AND 160 OR id < 7 OR id = 899")
    for name in COLUMNS:
        config = IndexConfig("zonemap", {"rows_per_zone": ROWS_PER_ZONE})
        dataset.create_scalar_index(name, config, name=f"map of {name}")
    for name in BLOOM_COLUMNS:
        config = IndexConfig(
            "bloomfilter", {"number_of_items": ROWS_PER_ZONE, "probability": 0.001}
        )
        dataset.create_scalar_index(name, config, name=f"filter of {name}")
    return IndexedTable(folder)


class IndexedTable:
    """A table of pylance with its live rows, and its indices as we open them."""

    def __init__(self, folder: Path) -> None:
        rows = lance.dataset(str(folder)).to_table(with_row_address=True)
        self.addresses = rows["_rowaddr"].to_pylist()
        self.values = {name: whole(rows[name]) for name in COLUMNS}
        self._folder = folder

    def open(self, name: str) -> ScalarSegment:
        (segment,) = open_segments(self._folder, name)
        return segment

    def rows_where(self, passes: list[bool]) -> list[int]:
        return [a for a, is_wanted in zip(self.addresses, passes, strict=True) if is_wanted]

    def check(self, segment: ScalarSegment, query: LeafQuery, passes: list[bool]) -> int:
        """Check that no row is missed; return how many are to be looked at."""
        answer = ask(segment, query, with_nulls=True)
        found = set(names(answer.possible)) & set(self.addresses)
        assert found >= set(self.rows_where(passes))
        assert names(answer.certain) == []
        return len(found)


def whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def sortable(values: pa.Array) -> Any:
    """Return values as Python orders them in the way that the index does, nulls as None."""
    kind = values.type
    if pa.types.is_floating(kind):
        bits = [
            None if v is None else np.array(v, kind.to_pandas_dtype()) for v in values.to_pylist()
        ]
        return [None if v is None else (not np.signbit(v), _magnitude(v)) for v in bits]
    if pa.types.is_temporal(kind):
        return values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [None if v is None else v.encode() for v in values.to_pylist()]
    return values.to_pylist()


def _magnitude(value: np.ndarray) -> float:
    size = 1e99 if np.isnan(value) else min(abs(float(value)), 1e98)
    return -size if np.signbit(value) else size


def drawn(values: pa.Array, seed: int, count: int) -> pa.Array:
    """Draw values that are there, none of them null."""
    present = values.drop_null()
    return present.take(pa.array(np.random.default_rng(seed).integers(0, len(present), count)))


@pytest.mark.parametrize("name", COLUMNS)
def test_zone_maps_miss_no_row_of_a_range(table: IndexedTable, name: str) -> None:
    segment, values = table.open(f"map of {name}"), table.values[name]
    keys, bounds = sortable(values), drawn(values, 1, 24)
    bound_keys = sortable(bounds)
    for at in range(0, len(bounds), 2):
        for has_lower, has_upper in ((True, True), (True, False), (False, True)):
            first, last = sorted((at, at + 1), key=bound_keys.__getitem__)
            query = Between(
                bounds[first] if has_lower else None,
                bounds[last] if has_upper else None,
                includes_lower=at % 4 == 0,
                includes_upper=at % 3 == 0,
            )
            low, high = bound_keys[first], bound_keys[last]
            passes = [
                key is not None
                and (not has_lower or key > low or (query.includes_lower and key == low))
                and (not has_upper or key < high or (query.includes_upper and key == high))
                for key in keys
            ]
            table.check(segment, query, passes)


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize(
    "name",
    [*(f"map of {name}" for name in COLUMNS), *(f"filter of {name}" for name in BLOOM_COLUMNS)],
)
def test_no_row_with_one_of_some_values_is_missed(
    table: IndexedTable, name: str, count: int
) -> None:
    segment, values = table.open(name), table.values[name.rpartition(" ")[2]]
    keys = sortable(values)
    for seed in range(4):
        wanted = drawn(values, seed, count)
        asked = set(sortable(wanted))
        table.check(segment, AnyOf(wanted), [key in asked for key in keys])


@pytest.mark.parametrize("kind", ["map", "filter"])
def test_null_rows_are_known_exactly(table: IndexedTable, kind: str) -> None:
    for name in COLUMNS if kind == "map" else BLOOM_COLUMNS:
        segment = table.open(f"{kind} of {name}")
        assert segment.knows_nulls
        expected = table.rows_where(table.values[name].is_null().to_pylist())
        answer = ask(segment, IsNull(), with_nulls=True)
        assert answer.is_exact
        assert names(answer.certain) == expected
        assert names(answer.nulls or {}) == []
        some = ask(segment, AnyOf(drawn(table.values[name], 0, 1)), with_nulls=True)
        assert names(some.nulls or {}) == expected


@pytest.mark.parametrize("name", ["string", "large_string", "binary", "large_binary"])
def test_zone_maps_miss_no_row_that_begins_with_a_prefix(table: IndexedTable, name: str) -> None:
    segment, values = table.open(f"map of {name}"), table.values[name]
    texts = values.cast(pa.large_binary()).to_pylist()
    for length in (0, 3, 6, 8):
        prefix = drawn(values, length, 1)[0].as_py()[:length]
        start = prefix.encode() if isinstance(prefix, str) else prefix
        query = StartsWith(pa.scalar(prefix, values.type), is_exact=True)
        passes = [text is not None and text.startswith(start) for text in texts]
        num_found = table.check(segment, query, passes)
        assert length != 8 or num_found <= 4 * ROWS_PER_ZONE


@pytest.mark.parametrize("name", ["int64", "string", "timestamp", "decimal128", "float64"])
def test_zones_without_a_value_are_left_out(table: IndexedTable, name: str) -> None:
    values = table.values[name]
    kinds = ["map", "filter"] if name in BLOOM_COLUMNS else ["map"]
    for kind in kinds:
        segment = table.open(f"{kind} of {name}")
        for seed in (60, 300):
            wanted = drawn(values, seed, 1)
            found = names(ask(segment, AnyOf(wanted)).possible)
            assert len(set(found) & set(table.addresses)) <= 8 * ROWS_PER_ZONE


def test_nothing_is_found_behind_the_greatest_value(table: IndexedTable) -> None:
    behind = Between(pa.scalar(1000, pa.int64()), None)
    found = names(ask(table.open("map of int64"), behind).possible)
    # Zones with deleted rows might have had values in these, as far as a reader can tell.
    assert set(found) & set(table.addresses) <= set(
        table.rows_where(table.values["int64"].is_null().to_pylist())
    )
