"""The JSON kernels do, for whole columns, what plain Python does for one document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given, strategies as st

from lance_core.encodings.jsonb import from_text, to_text
from lance_core.encodings.place import Place
from lance_core.errors import LanceError
from tests.json_documents import document_bytes, document_text
from tests.json_texts import texts, values

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = Place("a.lance", "j")

pieces = st.sampled_from(
    [*'[]{}:,"\\ue-+.01', "null", "true", "false", '"a"', "\\u00e4", "\\ud83d", "\\ude00", " "]
)
near_texts = st.lists(pieces, max_size=12).map("".join)


def outcome(act: Callable[[], object]) -> object:
    """Return what came out, or that it was refused."""
    try:
        return act()
    except LanceError as error:
        return type(error)


@given(column=st.lists(st.none() | texts, max_size=8))
def test_columns_of_text_become_the_documents_of_their_rows(column: list[str | None]) -> None:
    documents = from_text(pa.array(column, pa.string()), "j")
    expected = [None if text is None else document_bytes(text) for text in column]
    assert documents.to_pylist() == expected
    spelt = [None if document is None else document_text(document, PLACE) for document in expected]
    assert to_text(documents, PLACE).to_pylist() == spelt


@given(text=near_texts)
def test_what_is_nearly_json_is_taken_or_refused_alike(text: str) -> None:
    found = outcome(lambda: from_text(pa.array([text]), "j").to_pylist())
    assert found == outcome(lambda: [document_bytes(text)])


@given(value=values, places=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255))))
def test_damaged_documents_are_spelt_or_refused_alike(
    value: object, places: list[tuple[int, int]]
) -> None:
    document = bytearray(document_bytes(json.dumps(value)))
    for place, byte in places:
        document[place % len(document)] = byte
    damaged = bytes(document)
    found = outcome(lambda: to_text(pa.array([damaged], pa.large_binary()), PLACE).to_pylist())
    expected = outcome(lambda: [document_text(damaged, PLACE)])
    is_refused = isinstance(found, type) and isinstance(expected, type)
    assert found == expected or is_refused  # of two faults either may be named


@given(bits=st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_all_doubles_are_spelt_in_the_shortest_form(bits: list[int]) -> None:
    numbers = np.array(bits, np.uint64).view(np.float64)
    documents = [b"\x20\0\0\0\x20\0\0\x09\x60" + each.tobytes()[::-1] for each in numbers]
    found = to_text(pa.array(documents, pa.large_binary()), PLACE).to_pylist()
    assert found == [document_text(document, PLACE) for document in documents]
