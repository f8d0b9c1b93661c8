"""JSON documents: bytes and text."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lance_core.encodings.jsonb import from_text, to_text
from lance_core.encodings.place import Place
from lance_core.errors import CorruptFileError, InvalidRequestError, LanceError

PLACE = Place("a.lance", "j")

DOCUMENTS = {  # observed with pylance 14.0.2
    '{"b":1,"a":[1,"x",null,{"z":true}]}': (
        "4000000210000001100000015000002420000002616280000004200000021000000100000000"
        "5000000d5001784000000110000001400000007a5001",
        '{"a":[1,"x",null,{"z":true}],"b":1}',
    ),
    "-0": ("200000002000000100", "0"),
    "-0.0": ("2000000020000009608000000000000000", "-0.0"),
    "18446744073709551615": ("200000002000000950ffffffffffffffff", "18446744073709551615"),
    "18446744073709551616": ("20000000200000096043f0000000000000", "1.8446744073709552e+19"),
    "-9223372036854775808": ("2000000020000009408000000000000000", "-9223372036854775808"),
    "-9223372036854775809": ("200000002000000960c3e0000000000000", "-9.223372036854776e+18"),
    "-128": ("20000000200000024080", "-128"),
    "-129": ("200000002000000340ff7f", "-129"),
    "1e5": ("20000000200000096040f86a0000000000", "100000.0"),
    "1e15": ("200000002000000960430c6bf526340000", "1000000000000000.0"),
    "1e16": ("2000000020000009604341c37937e08000", "1e+16"),
    "1e-5": ("2000000020000009603ee4f8b588e368f1", "0.00001"),
    "1e-6": ("2000000020000009603eb0c6f7a0b5ed8d", "1e-6"),
    '"\\ud800"': ("20000000100000065c7564383030", '"\\\\ud800"'),
    '"é\\u001f\\/\\u2028"': ("2000000010000007c3a91f2fe280a8", '"é\\u001f/\u2028"'),
    "[]": ("80000000", "[]"),
    "{}": ("40000000", "{}"),
    "null": ("2000000000000000", "null"),
}

ENDLESS = {"200000002000000120": "null", "200000002000000130": "null", "200000002000000110": "null"}
"""Infinities and NaN, which pylance stores; no text of ours becomes one."""


def document_bytes(text: str) -> bytes:
    document: bytes = from_text(pa.array([text]), "j")[0].as_py()
    return document


def document_text(document: bytes, place: Place) -> str:
    text: str = to_text(pa.array([document], pa.large_binary()), place)[0].as_py()
    return text


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_text_becomes_the_document_that_pylance_stores(text: str) -> None:
    assert document_bytes(text).hex() == DOCUMENTS[text][0]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_is_spelt_as_pylance_spells_it(text: str) -> None:
    document, spelt = DOCUMENTS[text]
    assert document_text(bytes.fromhex(document), PLACE) == spelt


@pytest.mark.parametrize("document", ENDLESS)
def test_stored_infinities_are_spelt_as_pylance_spells_them(document: str) -> None:
    assert document_text(bytes.fromhex(document), PLACE) == ENDLESS[document]


@pytest.mark.parametrize("text", ["1e400", "-1e400", "[1, 1e400]", '{"a":' + "9" * 400 + "}"])
def test_a_number_beyond_the_doubles_is_refused_instead_of_becoming_null(text: str) -> None:
    texts = pa.array(["1.5", None, text, "2.5"])
    with pytest.raises(InvalidRequestError, match="column 'j', row 2: a number is beyond"):
        from_text(texts, "j")


def test_small_doubles_between_the_two_spellings_read_back_equal() -> None:
    for value in (1.25e-5, -1.25e-5, 9.999e-5, 1.25e-6, 1e-4):
        assert json.loads(document_text(document_bytes(repr(value)), PLACE)) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "nul",
            "[1,]",
            "NaN",
            "[1 2]",
            "{a:1}",
            "01",
            '"a',
            "1 2",
            "-",
            "1.",
            "1e",
            ".5",
        ),
        *(
            '{"a":1,"a":2}',
            '{"a":1,"\\u0061":2}',
            '{"a" 1}',
            '{"a":1',
            "[",
            "[1",
            '"\\x"',
            '"\\u12"',
        ),
        *('"\n"', "]", "{]", '{"a":1,}', '{"a"}', "+1", "Infinity", "tru", "1 x"),
    ],
)
def test_a_text_that_is_no_json_is_refused_by_column_and_row(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="column 'j', row 1"):
        from_text(pa.array(["1", text]), "j")


def test_what_is_wrong_is_named_with_its_place_in_characters() -> None:
    with pytest.raises(
        InvalidRequestError, match=r"a comma or the end .* is expected at character 5"
    ):
        document_bytes('["é" 1]')
    with pytest.raises(InvalidRequestError, match="an object has the key 'ä' twice"):
        document_bytes('[1, {"ä": 1, "b": 2, "\\u00e4": 3}]')


def test_rows_are_counted_over_all_that_is_parsed_at_once() -> None:
    texts = pa.array(['"' + "a" * 700_000 + '"'] * 4 + ["x"])
    with pytest.raises(InvalidRequestError, match="row 4: no JSON"):
        from_text(texts, "j")
    assert to_text(from_text(texts[:4], "j"), PLACE).equals(texts[:4])


def test_parts_of_arrays_keep_their_nulls() -> None:
    texts = pa.array(["1", None, "[2.5]", None, "3"] * 7)[3:30]
    documents = from_text(texts, "j")
    assert to_text(documents, PLACE).equals(texts)
    assert to_text(documents[5:20], PLACE).equals(texts[5:20])


def test_a_text_nested_without_end_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="too deeply"):
        document_bytes("[" * 100_000)


def test_deeply_nested_documents_are_spelt() -> None:
    document = bytes.fromhex("80000000")
    for _ in range(5000):
        document = bytes.fromhex("80000001") + (0x50000000 | len(document)).to_bytes(4) + document
    assert document_text(document, PLACE) == "[" * 5001 + "]" * 5001


def test_nulls_stay_null_in_both_directions() -> None:
    texts = pa.array(["1", None, "[]"])
    documents = from_text(texts, "j")
    assert documents.type == pa.large_binary()
    assert documents.null_count == 1
    assert to_text(documents, PLACE).equals(texts)


def test_texts_of_the_json_extension_type_are_taken() -> None:
    texts = pa.array(['{"a":1}', None], pa.json_())
    assert to_text(from_text(texts, "j"), PLACE).equals(texts.storage)


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_cut_document_is_corrupt(text: str) -> None:
    document = bytes.fromhex(DOCUMENTS[text][0])
    for length in range(len(document)):
        with pytest.raises(CorruptFileError):
            document_text(document[:length], PLACE)


def test_a_flipped_byte_gives_text_or_an_error() -> None:
    document = bytes.fromhex(DOCUMENTS['{"b":1,"a":[1,"x",null,{"z":true}]}'][0])
    for position in range(len(document)):
        for value in range(256):
            damaged = bytearray(document)
            damaged[position] = value
            try:
                document_text(bytes(damaged), PLACE)
            except LanceError:
                continue
