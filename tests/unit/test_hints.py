"""What field metadata asks of encodings."""

from __future__ import annotations

import pytest

from lance_core.encodings.hints import Hints
from lance_core.errors import InvalidRequestError


def test_a_field_without_metadata_asks_for_nothing():
    assert Hints.of({}, "x") == Hints()


def test_every_key_is_read():
    metadata = {
        "lance-encoding:compression": "ZSTD",
        "lance-encoding:compression-level": "3",
        "lance-encoding:structural-encoding": "fullzip",
        "lance-encoding:packed": "true",
        "lance-encoding:blob": "true",
        "lance-encoding:rle-threshold": "0.25",
        "lance-encoding:bss": "on",
        "lance-encoding:dict-divisor": "4",
        "lance-encoding:dict-size-ratio": "0.5",
        "lance-encoding:dict-values-compression": "none",
        "comment": "prices",
    }
    assert Hints.of(metadata, "x") == Hints(
        compression="zstd",
        compression_level=3,
        structural_encoding="fullzip",
        rle_threshold=0.25,
        bss="on",
        dict_divisor=4,
        dict_size_ratio=0.5,
        dict_values_compression="none",
    )


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("compression", "gzip", "one of zstd, lz4, fsst, none"),
        ("structural-encoding", "sparse", "one of miniblock, fullzip"),
        ("compression-level", "high", "a number from"),
        ("compression-level", "99", "a number from"),
        ("rle-threshold", "nan", "a number from 0.0 to 1.0"),
        ("dict-divisor", "0", "a number from 1"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_allowed(key, value, allowed):
    with pytest.raises(InvalidRequestError) as caught:
        Hints.of({f"lance-encoding:{key}": value}, "price")
    text = str(caught.value)
    assert f"lance-encoding:{key}" in text
    assert "'price'" in text
    assert repr(value) in text
    assert allowed in text
