"""Arrow values as JSON."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from service.api.json_rows import encode_rows


def rows_of(array: pa.Array, name: str = "x") -> Any:
    batch = pa.record_batch([array], names=[name])
    return [row[name] for row in orjson.loads(b"[" + encode_rows(batch) + b"]")]


MOMENT = dt.datetime(2026, 11, 27, 21, 7, 32, 57876)  # noqa: DTZ001 - columns without zone exist


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([2**64 - 1, None, 0], pa.uint64()), [2**64 - 1, None, 0]),
        (pa.array([-(2**63)], pa.int64()), [-(2**63)]),
        (pa.array([True, None]), [True, None]),
        (pa.array([None, None], pa.null()), [None, None]),
        (pa.array(["a", None, "é\u0000"]), ["a", None, "é\u0000"]),
        (pa.array(["b"], pa.large_string()), ["b"]),
        (pa.array([b"\x00\xff", None]), [base64.b64encode(b"\x00\xff").decode(), None]),
        (pa.array([b"ab"], pa.binary(2)), ["YWI="]),
        (pa.array([MOMENT.date(), None]), ["2026-11-27", None]),
        (pa.array([MOMENT.date()], pa.date64()), ["2026-11-27"]),
        (pa.array([MOMENT.time(), None], pa.time64("us")), ["21:07:32.057876", None]),
        (pa.array([61], pa.time32("s")), ["00:01:01"]),
        (pa.array([MOMENT, None], pa.timestamp("us")), ["2026-11-27T21:07:32.057876", None]),
        (
            pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin")),
            ["2026-11-27T21:07:32.057876Z"],
        ),
        (pa.array([1], pa.timestamp("ns", "+05:30")), ["1970-01-01T00:00:00.000000001Z"]),
        (pa.array([5, None], pa.duration("ms")), [5, None]),
        (pa.array([decimal.Decimal("12.30"), None]), ["12.30", None]),
        (pa.array([decimal.Decimal(0)], pa.decimal128(30, 10)), ["0.0000000000"]),
        (pa.array([[1, None], None, []], pa.list_(pa.int8())), [[1, None], None, []]),
        (pa.array([["a"], None], pa.large_list(pa.string())), [["a"], None]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
        (pa.array([[0.1, None], None], pa.list_(pa.float32(), 2)), [[0.1, None], None]),
        (
            pa.array([{"a": 1, "b": b"x"}, None, {"a": None, "b": None}]),
            [{"a": 1, "b": "eA=="}, None, {"a": None, "b": None}],
        ),
        (pa.array([{}, None], pa.struct([])), [{}, None]),
        (
            pa.array([[("k", 1.5)], None, []], pa.map_(pa.string(), pa.float32())),
            [[["k", 1.5]], None, []],
        ),
        (pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_each_type_has_its_json_form_also_in_a_slice(array: pa.Array, expected: Any) -> None:
    assert rows_of(array) == expected
    padded = pa.concat_arrays([array, array, array])
    assert rows_of(padded.slice(len(array), len(array))) == expected


DAYS = [-719_163, -719_162, None, 2_932_896, 2_932_897, 10**9, -(2**31)]
DAY_TEXTS = [-719_163, "0001-01-01", None, "9999-12-31", 2_932_897, 10**9, -(2**31)]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(DAYS, pa.int32()).cast(pa.date32()), DAY_TEXTS),
        (
            pa.array([2**62, 86_400_000, -(2**63)], pa.int64()).cast(pa.date64(), safe=False),
            None,
        ),
        (
            pa.array([-1, 0, 86_399, 86_400, None]).cast(pa.int32()).cast(pa.time32("s")),
            [-1, "00:00:00", "23:59:59", 86_400, None],
        ),
        (pa.array([-1, 86_400 * 10**9]).cast(pa.time64("ns")), [-1, 86_400 * 10**9]),
        (
            pa.array(
                [253_402_300_800, 253_402_300_799, -62_135_596_801, -62_135_596_800, 2**62]
            ).cast(pa.timestamp("s", "UTC")),
            [
                253_402_300_800,
                "9999-12-31T23:59:59Z",
                -62_135_596_801,
                "0001-01-01T00:00:00Z",
                2**62,
            ],
        ),
        (
            pa.array([-(2**63), 2**63 - 1, 0]).cast(pa.timestamp("us")),
            [-(2**63), 2**63 - 1, "1970-01-01T00:00:00.000000"],
        ),
        (
            pa.array([-(2**63), 2**63 - 1]).cast(pa.timestamp("ns")),
            ["1677-09-21T00:12:43.145224192", "2262-04-11T23:47:16.854775807"],
        ),
        (
            pa.array([[10**9], None]).cast(pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
            [[10**9], None],
        ),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_moments_that_have_no_text_are_stored_integers(array: pa.Array, expected: Any) -> None:
    shown = rows_of(array)
    assert not any("out of range" in str(value) for value in shown)
    assert expected is None or shown == expected


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_texts_of_timestamps_read_back_to_what_is_stored(stored: Any, unit: Any) -> None:
    array = pa.array(stored, pa.int64()).cast(pa.timestamp(unit))
    for shown, value in zip(rows_of(array), stored, strict=True):
        if isinstance(shown, str):
            back = np.datetime64(shown, unit).astype(np.int64)
            assert (int(back), shown[4]) == (value, "-")
        else:
            assert shown == value


def test_an_extension_type_is_shown_as_its_storage() -> None:
    array = pa.array(["{}"], pa.string()).cast(pa.json_())
    assert rows_of(array) == ["{}"]


@pytest.mark.parametrize(
    ("width", "third"),
    [(np.float16, b"0.3333"), (np.float32, b"0.33333334"), (np.float64, b"0.3333333333333333")],
)
def test_floats_have_the_shortest_text_of_their_width(width: Any, third: Any) -> None:
    batch = pa.record_batch([pa.array(np.array([0.1, 1 / 3, 3], width))], names=["x"])
    assert encode_rows(batch) == b'{"x":0.1},{"x":%b},{"x":3.0}' % third


@given(
    st.sampled_from([np.float16, np.float32, np.float64]).flatmap(
        lambda width: hnp.arrays(width, st.integers(0, 20))
    )
)
def test_floats_read_back_to_the_same_value_and_others_are_null(values: Any) -> None:
    back = rows_of(pa.array(values))
    for value, text in zip(values, back, strict=True):
        assert text is None if not np.isfinite(value) else values.dtype.type(text) == value


@given(st.sampled_from([np.int8, np.int64, np.uint16, np.uint64]), st.integers(0, 5), st.data())
def test_integers_are_those_of_the_array_from_any_place_on(
    width: Any, start: int, data: st.DataObject
) -> None:
    values = data.draw(hnp.arrays(width, st.integers(start, 20)))
    nulls = data.draw(st.none() | hnp.arrays(np.bool_, len(values)))
    array = pa.array(values, mask=nulls).slice(start)
    assert rows_of(array) == array.to_pylist()


def test_nan_inside_a_vector_is_null() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, np.nan, np.inf, 2.0]), 2)
    assert rows_of(vectors) == [[1.0, None], [None, 2.0]]


def test_rows_of_several_columns_and_chunks() -> None:
    table = pa.concat_tables([pa.table({"a": [1], "b": ["x"]}), pa.table({"a": [2], "b": ["y"]})])
    assert encode_rows(table) == b'{"a":1,"b":"x"},{"a":2,"b":"y"}'


def test_rows_without_columns_are_counted() -> None:
    batch = pa.record_batch([pa.array([1, 2])], names=["a"]).select([])
    assert encode_rows(batch) == b"{},{}"
