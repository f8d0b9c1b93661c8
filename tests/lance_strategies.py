"""Hypothesis strategies: random nested schemas, their data, and how it is cut into a Lance file.

What no file of a version can hold is not drawn (pylance 14.0.2 refuses to write it):

* 2.0: null structs, maps.
* 2.0, 2.1: packed structs of anything but numbers of whole bytes; values of no bytes, which it
  writes and cannot read.
* all: bits, nulls and values of no bytes in packed structs; null or nested structs without
  children; fixed-size lists of text, of lists or of values of no bytes; dictionaries of decimals,
  times or fixed-size binary.

Nor is what pylance does wrongly:

* packed structs of 256 bytes and more, or with vectors that are all null: it refuses or panics;
* fixed-size lists of structs: it cannot read them beside another column;
* slices of structs: it panics, see `LanceCase.batches_for_pylance`;
* FSST in 2.0 of anything but plain text that is not all null: it panics;
* vectors of bits or nulls only, or many bytes, as the structure that a hint asks for: it panics;
* rows of more than 65,535 levels of lists in one another: it refuses to write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, settings, strategies as st

from tests.lance_cases import LanceCase, children_of, has_list, is_list
from tests.lance_leaves import SHAPES, TEXTS, is_text, leaf, with_mask
from tests.soak import many_examples

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn
    from numpy.typing import NDArray

MAX_ROWS = 100_000
_MAX_DEPTH = 3
_MAX_BYTES = 2_000_000
_MANY_LEVELS = 66_000  # a row of more than 65,535 levels fits no chunk
_MANY_ELEMENTS = 3_000
_PACKED = {"lance-encoding:packed": "true"}
# Tables are large on purpose; `many` is for what reads and writes any of them.
lenient = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
many = settings(lenient, max_examples=many_examples())
_NAMES = ("a", "b", "ü")

NUMBERS = (
    *(pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.timestamp("s"),
    pa.timestamp("ms", "+02:00"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "Europe/Berlin"),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    pa.decimal128(38, 5),
    pa.decimal128(5, 0),
    pa.decimal256(76, -3),
    pa.binary(1),
    pa.binary(16),
    pa.binary(300),
)
TEXT = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
_INDICES = [pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
_ITEMS = [*TEXT, pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64()]

NO_BYTES = pa.binary(0)

numbers = st.sampled_from(NUMBERS)
texts = st.sampled_from(TEXT)
dictionaries = st.builds(pa.dictionary, st.sampled_from(_INDICES), st.sampled_from(_ITEMS))
dimensions = st.sampled_from([1, 2, 3, 4, 7, 8, 16, 33, 64, 130, 300])


def _vectors(elements: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.builds(pa.list_, elements, dimensions)


vectors = _vectors(st.one_of(numbers, st.just(pa.bool_()), _vectors(numbers)))
leaves = st.one_of(
    numbers, texts, st.just(pa.bool_()), numbers, texts, dictionaries, vectors, st.just(pa.null())
)


def hints(kind: pa.DataType, version: str) -> st.SearchStrategy[dict[str, str]]:
    """Return metadata keys that ask a writer for encodings; most fields have none."""
    has_fsst = is_text(kind) and version != "2.0"
    asked = {
        "lance-encoding:compression": ["zstd", "lz4", "none", *(["fsst"] if has_fsst else [])],
        "lance-encoding:bss": ["on", "off", "auto"],
        "lance-encoding:rle-threshold": ["0.1", "0.9"],
        "lance-encoding:dict-divisor": ["1", "100"],
        "lance-encoding:dict-values-compression": ["zstd", "none"],
    }
    if row_bytes(kind) <= 256 and kind != NO_BYTES and not pa.types.is_fixed_size_list(kind):
        asked["lance-encoding:structural-encoding"] = ["miniblock", "fullzip"]
    some = st.sampled_from(sorted(asked)).flatmap(
        lambda key: st.sampled_from(asked[key]).map(lambda value: {key: value})
    )
    return st.one_of(st.just({}), st.just({}), st.just({}), some)


@st.composite
def fields(draw: DrawFn, version: str, name: str, depth: int = 0) -> pa.Field:
    """Draw a field of any type that the version holds."""
    nullable = draw(st.sampled_from([True, True, True, False]))
    forms = ["leaf", "leaf"] if depth == _MAX_DEPTH else ["leaf", "leaf", "struct", "list"]
    if depth < _MAX_DEPTH and version == "2.2":
        forms.append("map")
    if depth == 0:
        forms.append("packed")
    form = draw(st.sampled_from(forms))
    if form == "packed":
        return pa.field(name, draw(packed_structs(version)), nullable=False, metadata=_PACKED)
    if form == "struct":
        nullable = nullable and version != "2.0"
        return pa.field(name, draw(structs(version, depth)), nullable=nullable)
    if form == "list":
        item_name = draw(st.sampled_from(["item", "element"]))
        item = draw(fields(version, item_name, depth + 1))
        return pa.field(name, draw(st.sampled_from([pa.list_, pa.large_list]))(item), nullable)
    if form == "map":
        key = pa.field("key", draw(st.one_of(texts, numbers)), nullable=False)
        value = draw(fields(version, "value", depth + 1))
        return pa.field(name, pa.map_(key, value), nullable=nullable)
    kind = draw(st.one_of(leaves, st.just(NO_BYTES)) if version == "2.2" else leaves)
    metadata = draw(hints(kind, version)) or None
    return pa.field(name, kind, nullable=nullable or pa.types.is_null(kind), metadata=metadata)


@st.composite
def structs(draw: DrawFn, version: str, depth: int) -> pa.DataType:
    """Draw a struct of one to three fields."""
    names = _NAMES[: draw(st.integers(1, 3))]
    return pa.struct([draw(fields(version, name, depth + 1)) for name in names])


@st.composite
def packed_structs(draw: DrawFn, version: str) -> pa.DataType:
    """Draw a struct whose children share one column."""
    narrow = st.sampled_from([kind for kind in NUMBERS if kind.bit_width <= 128])
    of_narrow = st.builds(pa.list_, narrow, st.just(4))
    kinds = st.one_of(narrow, texts, of_narrow) if version == "2.2" else narrow
    names = _NAMES[: draw(st.integers(1, 3))]
    return pa.struct([pa.field(name, draw(kinds), nullable=False) for name in names])


def row_bytes(kind: pa.DataType) -> int:
    """Return about how many bytes a value takes, lists counted with three elements."""
    if pa.types.is_struct(kind):
        return 1 + sum(row_bytes(field.type) for field in kind)
    if pa.types.is_map(kind):
        return 4 + 3 * (row_bytes(kind.key_type) + row_bytes(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * row_bytes(kind.value_type)
    if is_list(kind):
        return 4 + 3 * row_bytes(kind.value_type)
    if is_text(kind) or pa.types.is_dictionary(kind):
        return 30
    return max(int(kind.bit_width) // 8, 1) if not pa.types.is_null(kind) else 1


class _Builder:
    """Makes arrays from few draws: what a leaf looks like is drawn, its values come from a seed."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw
        self._in_packed = False
        self._num_lists = 0  # that the array being made lies in
        self._rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def array(self, field: pa.Field, num_values: int, room: int) -> pa.Array:
        """Return values of a field; ``room`` is how many bytes they may take at the most."""
        kind = field.type
        if pa.types.is_struct(kind):
            return self._struct(field, num_values, room)
        if pa.types.is_map(kind):
            return self._map(field, num_values, room)
        if pa.types.is_fixed_size_list(kind):
            return self._vectors(field, num_values, room)
        if is_list(kind):
            return self._lists(field, num_values, room)
        return with_mask(self._leaf(kind, num_values, room), self._mask(field, num_values))

    def _leaf(self, kind: pa.DataType, num_values: int, room: int) -> pa.Array:
        shape = str(self._draw(st.sampled_from(TEXTS if is_text(kind) else SHAPES)))
        if shape == "huge" and num_values * 40_000 > room:
            shape = "long"
        if shape in {"long", "edges"} and num_values * 300 > room:
            shape = "few"
        return leaf(kind, num_values, shape, self._rng)

    def _mask(self, field: pa.Field, num_values: int) -> NDArray[np.bool_]:
        """Draw which values are null."""
        form = "none"
        if field.nullable and not self._in_packed:
            form = str(self._draw(st.sampled_from(["none", "some", "most", "runs", "all", "last"])))
        share = {"none": 0.0, "some": 0.2, "most": 0.9, "all": 1.0}
        if form in share:
            return self._rng.random(num_values) < share[form]
        if form == "last":
            return np.equal(np.arange(num_values), num_values - 1)
        lengths = self._rng.integers(1, 700, num_values)
        runs: NDArray[np.bool_] = np.repeat(np.arange(num_values) % 2 == 0, lengths)
        return runs[:num_values]

    def _struct(self, field: pa.Field, num_values: int, room: int) -> pa.Array:
        share = room // field.type.num_fields
        self._in_packed = field.metadata is not None and b"lance-encoding:packed" in field.metadata
        children = [self.array(child, num_values, share) for child in field.type]
        self._in_packed = False
        mask = pa.array(self._mask(field, num_values))
        return pa.StructArray.from_arrays(children, fields=list(field.type), mask=mask)

    def _vectors(self, field: pa.Field, num_values: int, room: int) -> pa.Array:
        kind = field.type
        items = self.array(kind.value_field, num_values * kind.list_size, room)
        mask = pa.array(self._mask(field, num_values))
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=mask)

    def _offsets(self, kind: pa.DataType, num_values: int, room: int) -> NDArray[np.int64]:
        """Draw the lengths of lists; ``room`` bounds how many elements one of them may have."""
        form = self._draw(
            st.sampled_from(["short", "short", "empty", "threes", "one long", "ones"])
        )
        lengths = self._rng.integers(0, 5, num_values)
        if form == "empty":
            lengths[:] = 0
        elif form == "threes":
            lengths[:] = 3
        elif form == "ones":
            lengths[:] = self._rng.integers(0, 2, num_values)
        elif form == "one long" and num_values > 0:
            is_nested = self._num_lists > 0 or any(
                has_list(child.type) for child in children_of(kind)
            )
            most = _MANY_ELEMENTS if is_nested else _MANY_LEVELS
            lengths[int(self._rng.integers(num_values))] = min(most, room)
        return np.concatenate([[0], np.cumsum(lengths)])

    def _lists(self, field: pa.Field, num_values: int, room: int) -> pa.Array:
        kind = field.type
        offsets = self._offsets(kind, num_values, room // 2 // row_bytes(kind.value_type))
        self._num_lists += 1
        items = self.array(kind.value_field, int(offsets[-1]), room)
        self._num_lists -= 1
        is_large = pa.types.is_large_list(kind)
        make = pa.LargeListArray if is_large else pa.ListArray
        starts = pa.array(offsets, pa.int64() if is_large else pa.int32())
        mask = pa.array(self._mask(field, num_values))
        return make.from_arrays(starts, items, type=kind, mask=mask)

    def _map(self, field: pa.Field, num_values: int, room: int) -> pa.Array:
        kind = field.type
        width = row_bytes(kind.key_type) + row_bytes(kind.item_type)
        offsets = self._offsets(kind, num_values, room // 2 // width)
        self._num_lists += 1
        keys = self.array(kind.key_field, int(offsets[-1]), room // 2)
        values = self.array(kind.item_field, int(offsets[-1]), room // 2)
        self._num_lists -= 1
        starts = pa.array(offsets, pa.int32())
        mask = pa.array(self._mask(field, num_values))
        return pa.MapArray.from_arrays(starts, keys, values, type=kind, mask=mask)


row_counts = st.one_of(
    st.integers(0, 12), st.integers(0, 300), st.integers(0, 5_000), st.integers(0, MAX_ROWS)
)


@st.composite
def lance_cases(draw: DrawFn, version: str) -> LanceCase:
    """Draw a table of one to three columns and how to write it in a version."""
    names = _NAMES[: draw(st.integers(1, 3))]
    schema = pa.schema([draw(fields(version, name)) for name in names])
    width = sum(row_bytes(field.type) for field in schema)
    num_rows = min(draw(row_counts), _MAX_BYTES // width)
    skipped = draw(st.sampled_from([0, 0, 0, 1, 5]))
    builder = _Builder(draw)
    room = _MAX_BYTES // len(schema)
    columns = [builder.array(field, num_rows + skipped, room) for field in schema]
    table = pa.table(columns, schema=schema).slice(skipped)
    page_rows = draw(st.sampled_from([None, None, 1, 7, 137, 1025]))
    if page_rows is not None:
        page_rows = max(page_rows, num_rows // 20)
    return LanceCase(table, version, page_rows)
