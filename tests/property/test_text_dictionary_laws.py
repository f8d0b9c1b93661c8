"""Token dictionaries against a look at every token; damaged ones answer or are told as such."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.text.dictionary import TokenDictionary
from lance_core.index.text.fst_write import fst_bytes
from lance_core.kernels.text_fst_write import masked_crc32c

LETTERS = "abtqé€\U0001f600/~" + "".join(map(chr, range(0x100, 0x140)))
TOKENS = st.sets(st.text(LETTERS, max_size=6) | st.text("ab", max_size=80), max_size=60)

WORKED = bytes.fromhex(
    "0300000000000000000000000000000000" + "1082d3cf0010aac4001092c2"
    "000102010509726662" + "1103" + "0300000000000000" + "2700000000000000" + "d525e341"
)
"""The keys blue, fox and red with the numbers 2, 1 and 0, as pylance 14.0.2 writes them."""


def dictionary_of(numbers: dict[str, int]) -> TokenDictionary:
    tokens = sorted(numbers, key=str.encode)
    values = np.array([numbers[token] for token in tokens], np.int64)
    fst = fst_bytes(pa.array(tokens, pa.string()), values)
    most = max(numbers.values(), default=0) + 1
    return TokenDictionary.of_fst(pa.py_buffer(fst.tobytes()), max(most, len(tokens)), "a file")


def everything(dictionary: TokenDictionary) -> list[tuple[str, int]]:
    parts = list(dictionary.items())
    return [
        pair
        for keys, numbers in parts
        for pair in zip(keys.to_pylist(), numbers.tolist(), strict=True)
    ]


def edits(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for char in one:
        below = [row[0] + 1]
        for at, against in enumerate(other):
            below.append(min(row[at] + (char != against), row[at + 1] + 1, below[at] + 1))
        row = below
    return row[-1]


def test_the_dictionary_that_pylance_writes_for_three_words_is_read() -> None:
    dictionary = TokenDictionary.of_fst(pa.py_buffer(WORKED), 3, "a file")
    assert everything(dictionary) == [("blue", 2), ("fox", 1), ("red", 0)]
    assert dictionary.find(["red", "re", "redd", "", "fox", "blue", "x"]).tolist() == [
        *(0, -1, -1, -1),
        *(1, 2, -1),
    ]


def test_our_checksum_is_that_of_pylance() -> None:
    told = int.from_bytes(WORKED[-4:], "little")
    assert masked_crc32c(np.frombuffer(WORKED[:-4], np.uint8).copy()) == told


@given(TOKENS)
def test_every_token_is_found_with_its_number_and_no_other(tokens: set[str]) -> None:
    numbers = {token: 7 * at % 1009 for at, token in enumerate(sorted(tokens))}
    dictionary = dictionary_of(numbers)
    assert everything(dictionary) == sorted(numbers.items(), key=lambda pair: pair[0].encode())
    assert dictionary.find(list(numbers)).tolist() == list(numbers.values())
    others = [token + "a" for token in tokens if token + "a" not in tokens]
    assert dictionary.find(others).tolist() == [-1] * len(others)


@given(
    TOKENS, st.text(LETTERS, max_size=5), st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)
)
def test_near_tokens_are_the_first_within_the_distance(
    tokens: set[str], token: str, distance: int, fixed: int, most: int
) -> None:
    dictionary = dictionary_of({each: at for at, each in enumerate(sorted(tokens))})
    ordered = sorted(tokens, key=str.encode)
    prefix = token[:fixed]
    expected = [
        each for each in ordered if each.startswith(prefix) and edits(each, token) <= distance
    ][:most]
    found, numbers = dictionary.near(token, distance, num_fixed=fixed, most=most)
    assert found == expected
    assert numbers.tolist() == [sorted(tokens).index(each) for each in expected]


def test_a_node_may_have_all_256_bytes() -> None:
    keys = [bytes([byte]) * length for byte in range(256) for length in (1, 2)]
    fst = fst_bytes(pa.array(sorted(keys), pa.binary()), np.arange(512))
    dictionary = TokenDictionary.of_fst(pa.py_buffer(fst.tobytes()), 512, "a file")
    assert dictionary.find(["a", "aa", "\x00", "\x7f\x7f", "b"]).tolist() == [194, 195, 0, 255, 196]


def test_half_a_surrogate_pair_is_no_token() -> None:
    assert dictionary_of({"a": 0}).find(["\ud800", "a"]).tolist() == [-1, 0]


def test_a_token_may_be_longer_than_any_stack() -> None:
    tokens = {"a" * 5000: 0, "a" * 5000 + "b": 1, "c": 2}
    assert everything(dictionary_of(tokens)) == list(tokens.items())


def test_keys_out_of_order_or_twice_are_refused() -> None:
    for keys in (["b", "a"], ["a", "a"], ["ab", "a"], ["", ""]):
        with pytest.raises(InvalidRequestError, match="ascend"):
            fst_bytes(pa.array(keys), np.arange(2))


def test_tables_of_tokens_are_dictionaries_too() -> None:
    tokens, numbers = pa.array(["b", "a", "é"]), pa.array([2, 0, 1], pa.uint32())
    dictionary = TokenDictionary.of_table(tokens, numbers, 3, "a file")
    assert everything(dictionary) == [("a", 0), ("b", 2), ("é", 1)]
    for keys in (["a", "a"], ["a", None]):
        with pytest.raises(CorruptFileError):
            TokenDictionary.of_table(pa.array(keys), pa.array([0, 1], pa.uint32()), 2, "a file")
    with pytest.raises(CorruptFileError, match="damaged"):
        TokenDictionary.of_table(tokens, pa.array([2, 0, 9], pa.uint32()), 3, "a file").find(["é"])


def test_a_search_too_long_to_compare_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="1024 at most"):
        dictionary_of({"a": 0}).near("a" * 1024, 1, num_fixed=0, most=5)


def test_ends_that_fit_no_dictionary_are_told() -> None:
    for changed in (WORKED[:35], b"\x02" + WORKED[1:], WORKED[:-12] + b"\xff" * 8 + WORKED[-4:]):
        with pytest.raises(CorruptFileError):
            TokenDictionary.of_fst(pa.py_buffer(changed), 3, "a file")
    with pytest.raises(CorruptFileError, match="3 keys for 2 tokens"):
        TokenDictionary.of_fst(pa.py_buffer(WORKED), 2, "a file")


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_damaged_bytes_answer_or_are_told_as_such(seed: int, changes: int) -> None:
    tokens = [f"{chr(97 + at % 26)}q{at}" for at in range(150)]
    fst = fst_bytes(pa.array(sorted(tokens)), np.arange(150))
    choose = np.random.default_rng(seed)
    for _ in range(changes):
        fst[choose.integers(16, len(fst) - 12)] = choose.integers(0, 256)
    with suppress(CorruptFileError):
        dictionary = TokenDictionary.of_fst(pa.py_buffer(fst.tobytes()), 150, "a file")
        with suppress(CorruptFileError):
            assert dictionary.find(tokens).max() < 150
        with suppress(CorruptFileError):
            assert len(dictionary.near("aq52", 2, num_fixed=0, most=20)[0]) <= 20
        assert len(everything(dictionary)) <= 150
