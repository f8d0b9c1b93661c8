"""Blocks of posting lists, laid out by plain Python as the format says."""

from __future__ import annotations

import struct
from itertools import pairwise


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def packed(values: list[int], width: int, lanes: int) -> bytes:
    """Pack values as the format says: lane by lane, words of the lanes in turn."""
    words = [[0] * width for _ in range(lanes)]
    for index, value in enumerate(values):
        bits = value << (index // lanes * width)
        lane = words[index % lanes]
        for word in range(width):
            lane[word] |= bits >> (32 * word) & 0xFFFFFFFF
    return b"".join(
        struct.pack("<I", words[lane][word]) for word in range(width) for lane in range(lanes)
    )


def bits_of(values: list[int]) -> int:
    return max(values).bit_length()


def differences(docs: list[int]) -> list[int]:
    return [0, *(after - before for before, after in pairwise(docs))]


def small_block(docs: list[int], counts: list[int], score: float = 1.5) -> bytes:
    own = differences(docs)
    body = b""
    for values in (own, counts):
        body += bytes([bits_of(values)]) + packed(values, bits_of(values), 4)
    return struct.pack("<fI", score, docs[0]) + body


def large_block(docs: list[int], counts: list[int], width: int) -> bytes:
    own = differences(docs)
    upper = [(index, count >> width) for index, count in enumerate(counts) if count >> width > 0]
    low = [count & ((1 << width) - 1) for count in counts]
    return (
        struct.pack("<IB", docs[0], bits_of(own))
        + packed(own, bits_of(own), 8)
        + bytes([width, len(upper)])
        + packed(low, width, 8)
        + b"".join(bytes([index]) + varint(high) for index, high in upper)
    )


def tail(docs: list[int], counts: list[int], *, has_score: bool, is_varint: bool) -> bytes:
    score = struct.pack("<f", 1.5) if has_score else b""
    if is_varint:
        numbers = [docs[0], *differences(docs)[1:], *counts]
        return score + b"".join(map(varint, numbers))
    return score + struct.pack(f"<{2 * len(docs)}I", *docs, *counts)
