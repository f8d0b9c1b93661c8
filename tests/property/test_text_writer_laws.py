"""Posting lists that kernels make of occurrences: what plain Python makes of them."""

from __future__ import annotations

import math
import struct
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from lance_core.index.text.writers.encoded_lists import DocumentWeights, PostingForm, encoded_lists
from lance_core.index.text.writers.runs import PostingLists, PostingRuns
from lance_core.kernels.text_write_impacts import length_codes
from tests.text_blocks import bits_of, differences, large_block, packed, small_block, tail, varint

SEEDS = st.integers(0, 2**32 - 1)
Postings = dict[int, dict[int, list[int]]]
"""Positions by token and document."""


def random_texts(seed: int, num: int, num_tokens: int) -> list[list[int]]:
    """Return the tokens of documents: few in nearly all, some often in one."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, num_tokens + 1)
    weights /= weights.sum()
    texts = [
        rng.choice(num_tokens, int(rng.integers(1, 9)), p=weights).tolist() for _ in range(num)
    ]
    texts[num // 2] += [0] * int(rng.choice([1, 200, 5000]))
    texts[0] = [*range(num_tokens), *texts[0]]  # each token occurs
    return texts


def by_token(texts: list[list[int]]) -> Postings:
    found: Postings = {}
    for doc, tokens in enumerate(texts):
        for position, token in enumerate(tokens):
            found.setdefault(token, {}).setdefault(doc, []).append(position)
    return found


def sorted_lists(
    texts: list[list[int]], num_tokens: int, memory_bytes: int, most: int, *, positions: bool
) -> list[PostingLists]:
    """Hand over documents in groups of three, and take the posting lists."""
    with ExitStack() as stack:
        runs = PostingRuns(memory_bytes, stack, with_positions=positions)
        for start in range(0, len(texts), 3):
            some = texts[start : start + 3]
            docs = np.repeat(np.arange(start, start + len(some)), [len(each) for each in some])
            runs.add(
                np.array([token for each in some for token in each], np.int32),
                docs.astype(np.uint32),
                np.array([at for each in some for at in range(len(each))], np.int32),
                num_tokens,
            )
        return list(runs.lists(num_tokens, most))


def held(parts: list[PostingLists]) -> Postings:
    found: Postings = {}
    token = 0
    for part in parts:
        ends = np.cumsum(part.frequencies)
        for start, stop in zip(part.bounds[:-1], part.bounds[1:], strict=True):
            found[token] = {}
            for at in range(start, stop):
                count = int(part.frequencies[at])
                own = range(count)
                if part.positions is not None:
                    own = part.positions[ends[at] - count : ends[at]].tolist()
                found[token][int(part.docs[at])] = list(own)
            token += 1
    return found


@pytest.mark.parametrize("positions", [False, True])
@given(
    seed=SEEDS,
    memory_bytes=st.sampled_from([1, 300, 5000, 1 << 30]),
    most=st.sampled_from([1, 50, 1 << 30]),
)
def test_occurrences_are_given_back_by_token_however_little_memory_there_is(
    positions: bool, seed: int, memory_bytes: int, most: int
) -> None:
    texts = random_texts(seed, 40, 12)
    parts = sorted_lists(texts, 12, memory_bytes, most, positions=positions)
    expected = by_token(texts)
    if not positions:
        expected = {
            token: {doc: list(range(len(each))) for doc, each in docs.items()}
            for token, docs in expected.items()
        }
    assert held(parts) == expected


def fewest_bytes(docs: list[int], counts: list[int]) -> bytes:
    """Return the shortest of all blocks of 256, the widest of those."""
    widths = range(bits_of(counts), -1, -1)
    allowed = [w for w in widths if sum(count >> w > 0 for count in counts) <= 31]
    return min((large_block(docs, counts, width) for width in allowed), key=len)


def expected_block(docs: list[int], counts: list[int], size: int, score: float) -> bytes:
    if len(docs) == size:
        if size == 128:
            return small_block(docs, counts, score)
        return fewest_bytes(docs, counts)
    numbers = [docs[0], *differences(docs)[1:], *counts]
    prefix = struct.pack("<f", score) if size == 128 else b""
    return prefix + b"".join(map(varint, numbers))


def code_of(length: int) -> int:
    codes = np.zeros(1, np.uint8)
    length_codes(np.array([length], np.uint32), codes)
    return int(codes[0])


def expected_impacts(docs: list[int], counts: list[int], lengths: list[int]) -> bytes:
    pairs = {(count, code_of(lengths[doc])) for doc, count in zip(docs, counts, strict=True)}
    best = sorted(
        (count, code)
        for count, code in pairs
        if not any(
            (more >= count and less <= code) and (more, less) != (count, code)
            for more, less in pairs
        )
    )
    entry = varint(docs[-1]) + varint(len(best))
    before = (0, 0)
    for count, code in best:
        added, step = count - before[0] - 1, code - before[1]
        entry += varint(added << 1) if step == 1 else varint(added << 1 | 1) + varint(step)
        before = (count, code)
    return entry


def expected_score(
    docs: list[int], counts: list[int], lengths: list[int], num_docs: int, frequency: int
) -> float:
    """Return the best score of documents, each step in 32 bits."""
    f32 = np.float32
    average = f32(sum(lengths)) / f32(num_docs)
    argument = (f32(num_docs) - f32(frequency) + f32(0.5)) / (f32(frequency) + f32(0.5)) + f32(1)
    inverse = f32(math.log(float(argument)))
    best = f32(0)
    for doc, count in zip(docs, counts, strict=True):
        norm = f32(1.2) * (f32(1) - f32(0.75) + f32(0.75) * f32(lengths[doc]) / average)
        best = max(best, f32(count) / (f32(count) + norm))
    return float(best * (inverse * (f32(1.2) + f32(1))))


def stream(lists: list[list[int]]) -> bytes:
    own = [value for each in lists for value in [each[0], *differences(each)[1:]]]
    full = len(own) // 128 * 128
    groups = [own[at : at + 128] for at in range(0, full, 128)]
    packed_groups = [bytes([bits_of(each)]) + packed(each, bits_of(each), 4) for each in groups]
    return b"".join(packed_groups) + b"".join(map(varint, own[full:]))


@pytest.mark.parametrize("size", [128, 256])
@given(seed=SEEDS, num=st.sampled_from([1, 127, 128, 129, 256, 257, 600]))
def test_posting_lists_are_laid_out_as_the_format_says(size: int, seed: int, num: int) -> None:
    texts = random_texts(seed, num, 4)
    (lists,) = sorted_lists(texts, 4, 1 << 30, 1 << 30, positions=True)
    lengths = [len(each) for each in texts]
    columns = encoded_lists(
        lists, DocumentWeights.of(np.array(lengths, np.uint32)), PostingForm(size)
    )
    for token, postings in by_token(texts).items():
        docs, counts = list(postings), [len(each) for each in postings.values()]
        blocks = [slice(at, at + size) for at in range(0, len(docs), size)]
        scores = [
            expected_score(docs[each], counts[each], lengths, num, len(docs)) for each in blocks
        ]
        assert columns[0][token].as_py() == [
            expected_block(docs[each], counts[each], size, score)
            for each, score in zip(blocks, scores, strict=True)
        ]
        assert columns[1][token].as_py() == max(scores)
        assert columns[2][token].as_py() == len(docs)
        groups = [slice(at, at + 32 * size) for at in range(0, len(docs), 32 * size)]
        assert columns[3][token].as_py() == [
            expected_impacts(docs[each], counts[each], lengths) for each in [*blocks, *groups]
        ]
        streams = [stream(list(postings.values())[each]) for each in blocks]
        assert columns[4][token].as_py() == b"".join(streams)
        ends = np.cumsum([0, *map(len, streams)])
        assert columns[5][token].as_py() == ends[:-1].tolist()


def test_groups_of_blocks_have_impacts_of_their_own() -> None:
    num = 128 * 70
    docs = np.arange(num, dtype=np.uint32)
    counts = np.random.default_rng(3).integers(1, 9, num).astype(np.uint32)
    lists = PostingLists(np.array([0, num]), docs, counts, None)
    lengths = np.random.default_rng(4).integers(9, 3000, num).astype(np.uint32)
    entries = encoded_lists(lists, DocumentWeights.of(lengths), PostingForm(128))[3][0].as_py()
    assert len(entries) == 70 + 3
    for place, start in enumerate(range(0, num, 128 * 32)):
        some = slice(start, start + 128 * 32)
        expected = expected_impacts(docs[some].tolist(), counts[some].tolist(), lengths.tolist())
        assert entries[70 + place] == expected


@given(st.integers(1, 2**32 - 1))
def test_codes_of_lengths_keep_four_bits(length: int) -> None:
    code = code_of(length)
    stood_for = code if code < 8 else (code & 7 | 8) << (code >> 3) - 1
    shift = max(length.bit_length() - 4, 0)
    assert stood_for == length >> shift << shift


@pytest.mark.parametrize("is_first", [False, True])
def test_columns_are_of_the_types_that_the_schema_tells(is_first: bool) -> None:
    (lists,) = sorted_lists([[0, 1], [1]], 2, 1 << 30, 1 << 30, positions=True)
    form = PostingForm(128, is_first=is_first, has_positions=True)
    columns = encoded_lists(lists, DocumentWeights.of(np.ones(2, np.uint32)), form)
    assert pa.RecordBatch.from_arrays(columns, schema=form.schema).num_rows == 2


@given(seed=SEEDS)
def test_version_1_has_words_in_tails_and_parts_of_positions(seed: int) -> None:
    texts = random_texts(seed, 131, 3)
    (lists,) = sorted_lists(texts, 3, 1 << 30, 1 << 30, positions=True)
    lengths = np.array([len(each) for each in texts], np.uint32)
    form = PostingForm(128, is_first=True, has_positions=True)
    columns = encoded_lists(lists, DocumentWeights.of(lengths), form)
    for token, postings in by_token(texts).items():
        docs, counts = list(postings), [len(each) for each in postings.values()]
        if len(docs) % 128 > 0:
            some = slice(len(docs) // 128 * 128, None)
            words = tail(docs[some], counts[some], has_score=True, is_varint=False)
            assert columns[0][token].as_py()[-1][4:] == words[4:]
        assert columns[4][token].as_py() == [position_parts(each) for each in postings.values()]


def position_parts(positions: list[int]) -> list[bytes]:
    full = len(positions) // 128 * 128
    parts = [struct.pack("<I", len(positions))]
    for at in range(0, full, 128):
        own = differences(positions[at : at + 128])
        width = bits_of(own)
        parts.append(struct.pack("<IB", positions[at], width) + packed(own, width, 4))
    if full < len(positions):
        parts.append(struct.pack(f"<{len(positions) - full}I", *positions[full:]))
    return parts
