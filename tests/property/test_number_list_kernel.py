"""Numbers of JSON lists as float32, as a parser and numpy make them."""

from __future__ import annotations

import json
import math

import numpy as np
import orjson
import pytest
from hypothesis import example, given, strategies as st

from lance_core.kernels.number_list import read_numbers

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-2, 2),
    st.integers(-(10**19), 10**19),
)


def read(text: bytes) -> np.ndarray[tuple[int], np.dtype[np.float32]] | None:
    return read_numbers(text, 1, len(text))


def converted(text: bytes) -> bytes:
    with np.errstate(over="ignore"):
        return np.array(orjson.loads(text), np.float32).tobytes()


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.sampled_from([(",", ":"), (" ,\n\t ", ":")]))
@example([0.1, 1e-45, 1.4e-45, 3.4e38, 3.5e38, -0.0, 5e-324, 1e23], (",", ":"))
@example([1 + 2.0**-24, 16_777_217, math.nextafter(1 + 2.0**-24, 2)], (",", ":"))
def test_numbers_that_are_read_are_those_of_a_parser_rounded_twice(
    numbers: list[float], separators: tuple[str, str]
) -> None:
    text = json.dumps(numbers, separators=separators).encode()
    found = read(text)
    assert found is None or found.tobytes() == converted(text)


@given(st.lists(st.floats(-100, 100).filter(lambda number: abs(number) > 1e-30), min_size=1))
def test_the_numbers_of_embeddings_are_read(numbers: list[float]) -> None:
    text = orjson.dumps(np.array(numbers, np.float32).tolist())
    found = read(text)
    assert found is not None
    assert found.tobytes() == converted(text)


@given(st.text("0123456789+-.eE, ", min_size=1, max_size=12))
def test_what_a_parser_refuses_is_not_read(text: str) -> None:
    whole = f"[{text}]".encode()
    found = read(whole)
    if found is not None:
        assert found.tobytes() == converted(whole)


@pytest.mark.parametrize("inside", ["", " ", "[1]", "true", "null", '"1"', "{}", "1\x0b", "1 2"])
def test_what_is_no_number_is_not_read(inside: str) -> None:
    assert read(f"[{inside}]".encode()) is None


def test_half_way_between_two_floats_is_left_to_exact_arithmetic() -> None:
    assert read(b"[1.000000059604644775390625]") is None
    assert read(b"[1.00000005960464]") is not None
