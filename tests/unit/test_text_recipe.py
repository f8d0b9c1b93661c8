"""How inverted indices are to be built: what is asked for, and what manifest and files say."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.text.parameters import given_parameters
from lance_core.index.text.writers.recipe import (
    TEXT_PARAMETERS,
    fitting_version,
    text_recipe,
    told_parameters,
)

USUAL = b'\n\x06simple\x12\t"English" (\x28\x01\x30\x01\x38\x01\x40\x01\x48\x03\x50\x03\x60\x80\x01'


def test_details_are_the_bytes_that_the_page_gives() -> None:
    assert text_recipe(pa.string(), {}).details.value == USUAL + b"\x78\x02"
    positions = text_recipe(pa.string(), {"with_position": True}).details.value
    assert positions == USUAL.replace(b" (", b"\x18\x01 (") + b"\x78\x02"


def test_details_leave_out_what_is_not_and_say_of_code_what_it_sets() -> None:
    given = {"max_token_length": None, "stem": False, "min_ngram_length": 0}
    details = text_recipe(pa.string(), given).details.value
    without = USUAL.replace(b" (", b"").replace(b"\x30\x01", b"").replace(b"\x48\x03", b"")
    assert details == without + b"\x78\x02"
    code = text_recipe(pa.string(), {"base_tokenizer": "code", "preserve_original": False})
    assert code.details.value.endswith(b"\x6a\x04\x10\x01\x18\x00\x78\x03")
    assert code.details.index_version == 3


@pytest.mark.parametrize(
    ("given", "version"),
    [
        ({}, 2),
        ({"format_version": 1}, 1),
        ({"format_version": "v1"}, 1),
        ({"format_version": "3"}, 3),
        ({"block_size": 256}, 3),
        ({"base_tokenizer": "code", "format_version": "V3"}, 3),
        ({"format_version": None}, 2),
    ],
)
def test_the_format_is_the_one_asked_for_or_the_usual_one(
    given: dict[str, Any], version: int
) -> None:
    recipe = text_recipe(pa.large_string(), given)
    assert recipe.format_version == version
    assert recipe.form.is_first == (version == 1)
    told = recipe.segment_metadata(2)
    assert told["format_version"] == str(version)
    assert told["posting_tail_codec"] == ("fixed32_v1" if version == 1 else "varint_delta_v1")
    assert json.loads(told["partitions"]) == [0, 1]


@pytest.mark.parametrize("asked", [0, 4, "4", "", 2.0, True, [2]], ids=repr)
def test_formats_that_there_are_not_are_refused(asked: object) -> None:
    with pytest.raises(InvalidRequestError, match="format_version is 1, 2 or 3"):
        text_recipe(pa.string(), {"format_version": asked})


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int64(), pa.binary(), pa.list_(pa.int64()), pa.list_(pa.list_(pa.string()))),
        *(pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.string(), 2), pa.null()),
    ],
)
def test_columns_without_texts_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidRequestError, match="takes columns of texts"):
        text_recipe(kind, {})


@pytest.mark.parametrize(
    "given",
    [{}, {"base_tokenizer": "code", "index_operators": True}, {"custom_stop_words": ["a"]}],
)
def test_parameters_that_files_tell_can_be_asked_for_again(given: dict[str, Any]) -> None:
    parameters = given_parameters(given)
    told = told_parameters(parameters)
    assert set(told) <= set(TEXT_PARAMETERS)
    assert given_parameters(told) == parameters


def test_a_format_that_lacks_what_is_asked_gives_way() -> None:
    assert fitting_version(given_parameters({}), 0) == 1
    assert fitting_version(given_parameters({"block_size": 256}), 2) == 3
