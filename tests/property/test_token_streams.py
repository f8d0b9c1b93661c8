"""Tokens of many texts against those of one, and the kernels against plain Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.index.text.base_tokenizers import character_classes
from lance_core.index.text.parameters import BASE_TOKENIZERS, TextParameters, given_parameters
from lance_core.index.text.token_stream import TokenStream
from lance_core.index.text.tokenizer import Tokenizer
from lance_core.kernels.memory import address_of
from lance_core.kernels.text_known import none_known, number_pieces
from lance_core.kernels.text_pieces import find_ngrams, find_runs, room_for

WORDS = st.sampled_from(
    [
        *("The", "the", "quick", "foxes", "running", "getUserName", "HTML2JSON", "__a_b", "::->"),
        *("Straße", "ﬁne", "½", "İx", "ΣΟΣ", "世界", "x\u0301y", "नमस्ते", "ǅa", "a" * 39),
        *("a" * 40, "é" * 20, "\x0b", "\0", "can't"),
    ]
)
BLANKS = st.sampled_from([" ", "", "-", "_", "\t", "\u2003"])
TEXTS = st.lists(st.tuples(WORDS | st.text(max_size=4), BLANKS).map("".join), max_size=8).map(
    "".join
)
COLUMNS = st.lists(st.none() | TEXTS, max_size=6)
KINDS = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])


@st.composite
def parameters(draw: st.DrawFn) -> TextParameters:
    base = draw(st.sampled_from(BASE_TOKENIZERS))
    flags = ["lower_case", "stem", "remove_stop_words", "ascii_folding", "prefix_only"]
    if base == "code":
        flags += ["split_identifiers", "split_on_numerics", "preserve_original", "index_operators"]
    chosen: dict[str, object] = {flag: draw(st.booleans()) for flag in flags}
    least = draw(st.integers(1, 3))
    return given_parameters(
        {
            "base_tokenizer": base,
            "max_token_length": draw(st.none() | st.sampled_from([0, 3, 40])),
            "min_ngram_length": least,
            "max_ngram_length": draw(st.integers(least, 5)),
            **chosen,
        }
    )


@given(parameters(), st.lists(st.tuples(COLUMNS, KINDS, st.integers(0, 2)), max_size=3))
def test_many_texts_have_the_tokens_of_each(
    chosen: TextParameters, columns: list[tuple[list[str | None], pa.DataType, int]]
) -> None:
    tokenizer = Tokenizer(chosen)
    stream = TokenStream(tokenizer)
    met: dict[str, None] = {}
    for values, kind, skipped in columns:
        found = stream.add(pa.array(values, kind).slice(skipped))
        expected = [
            (number, token.text, token.position)
            for number, text in enumerate(values[skipped:])
            if text is not None
            for token in tokenizer.tokens(text)
        ]
        texts = [stream.tokens[token_id] for token_id in found.token_ids]
        listed = zip(found.texts.tolist(), texts, found.positions.tolist(), strict=True)
        assert list(listed) == expected
        met.update(dict.fromkeys(text for _, text, _ in expected))
    assert stream.tokens == list(met)


def test_a_dictionary_grows_over_many_pieces() -> None:
    stream = TokenStream(Tokenizer(given_parameters({"stem": False})))
    words = [f"w{number}" for number in range(20_000)]
    for start in range(0, len(words), 3000):
        stream.add(pa.array([" ".join(words[start : start + 3000])]))
    assert stream.tokens == words
    again = stream.add(pa.array([" ".join(words[::-1])]))
    assert again.token_ids.tolist() == list(range(20_000))[::-1]
    assert again.positions.tolist() == list(range(20_000))


@given(st.lists(st.binary(max_size=12), min_size=1, max_size=6), st.integers(1, 9))
def test_bytes_that_are_no_text_are_read_inside_their_bounds(
    values: list[bytes], most_bytes: int
) -> None:
    data = np.frombuffer(b"".join(values) + b"\0", np.uint8)
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    classes = character_classes(TextParameters())
    assert classes is not None
    base = address_of(data)
    for find in (
        lambda room: find_runs(base, offsets, classes, most_bytes, room),
        lambda room: find_ngrams(base, offsets, 1, 3, False, most_bytes, room),
    ):
        room = room_for(find(room_for(0)))
        assert find(room) == len(room.texts)
        assert (room.starts >= offsets[room.texts]).all()
        assert (room.starts + room.sizes <= offsets[room.texts + 1]).all()
        assert ((room.sizes > 0) & (room.sizes < most_bytes)).all()


@given(st.lists(st.lists(st.binary(max_size=20), max_size=30), max_size=4))
def test_pieces_are_numbered_as_by_a_dict(calls: list[list[bytes]]) -> None:
    known, num_known = none_known(), 0
    numbers_of: dict[bytes, int] = {}
    for pieces in calls:
        data = np.frombuffer(b"".join(pieces) + b"\0", np.uint8)
        sizes = np.array([len(piece) for piece in pieces], np.int32)
        starts = (np.cumsum(sizes) - sizes).astype(np.int64)
        numbers = np.empty(len(pieces), np.int32)
        known, num_known = number_pieces(address_of(data), starts, sizes, known, num_known, numbers)
        assert numbers.tolist() == [
            numbers_of.setdefault(piece, len(numbers_of)) for piece in pieces
        ]
    ends = known.ends[: num_known + 1].tolist()
    stored = [known.data[start:stop].tobytes() for start, stop in pairwise(ends)]
    assert stored == list(numbers_of)


@pytest.mark.parametrize("base", ["simple", "code", "whitespace"])
def test_a_run_may_end_with_the_text(base: str) -> None:
    stream = TokenStream(Tokenizer(given_parameters({"base_tokenizer": base, "stem": False})))
    found = stream.add(pa.array(["fox", "fox ", " fox", "é", "", None, "b世"]))
    assert found.texts.tolist() == [0, 1, 2, 3, 6]
    assert stream.tokens == ["fox", "e", "b世"]
