"""Kernels that put pages together agree with plain twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from hypothesis import given, strategies as st

from lance_core.encodings.levels import Layer
from lance_core.encodings.shred import shred
from lance_core.kernels.full_zip_encode import zip_entries
from lance_core.kernels.memory import address_of
from lance_core.kernels.mini_block_encode import assemble_chunks
from lance_core.schema.from_arrow import schema_from_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Draw = Callable[[st.SearchStrategy[object]], object]

Chunk = tuple[int, list[bytes]]
Numbers = list[int | None] | None


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def plain_chunk(chunk: Chunk, num_level_parts: int, value_word: int) -> bytes:
    num_levels, parts = chunk
    words = [2] * num_level_parts + [value_word] * (len(parts) - num_level_parts)
    sizes = [len(part).to_bytes(word, "little") for part, word in zip(parts, words, strict=True)]
    header = num_levels.to_bytes(2, "little") + b"".join(sizes)
    return b"".join(padded(piece) for piece in (header, *parts))


@st.composite
def chunks_of_parts(draw: Draw) -> list[Chunk]:
    """Draw chunks of the same number of parts, 1 to 4."""
    num_parts = draw(st.integers(1, 4))
    parts = st.lists(st.binary(max_size=40), min_size=num_parts, max_size=num_parts)  # type: ignore[arg-type]  # an integer was drawn
    return draw(st.lists(st.tuples(st.integers(0, 65_535), parts), min_size=1, max_size=5))  # type: ignore[return-value]  # as drawn


@given(chunks_of_parts(), st.integers(0, 2), st.booleans())
def test_chunks_are_put_together_as_the_format_says(
    chunks: list[Chunk], num_level_parts: int, has_large_chunk: bool
) -> None:
    num_level_parts = min(num_level_parts, len(chunks[0][1]) - 1)
    value_word = 4 if has_large_chunk else 2
    expected = b"".join(plain_chunk(chunk, num_level_parts, value_word) for chunk in chunks)
    streams = [
        np.frombuffer(b"".join(column) + b"?", np.uint8).copy()
        for column in zip(*(parts for _, parts in chunks), strict=True)
    ]
    sizes = np.array([[len(part) for part in parts] for _, parts in chunks], np.int64).T.copy()
    out = np.full(len(expected), 0xAA, np.uint8)
    assemble_chunks(
        np.array([num_levels for num_levels, _ in chunks], np.int64),
        np.array([address_of(stream) for stream in streams], np.int64),
        sizes,
        num_level_parts,
        has_large_chunk,
        out.view(np.uint16),
        out,
    )
    assert out.tobytes() == expected


def plain_entries(
    controls: Sequence[int], values: Sequence[bytes], control_bytes: int, bits_def: int,
    max_visible: int, length_bytes: int,
) -> list[bytes]:  # fmt: skip
    left = list(values)
    entries = []
    for word in controls:
        definition = word & ((1 << bits_def) - 1)
        entry = word.to_bytes(control_bytes, "little") if control_bytes > 0 else b""
        if definition <= max_visible:
            value = left.pop(0)
            if length_bytes == 0:
                entry += value
            elif definition == 0:
                entry += len(value).to_bytes(length_bytes, "little") + value
        entries.append(entry)
    return entries


@given(st.data(), st.sampled_from([0, 4, 8]), st.sampled_from([1, 2, 4]))
def test_entries_are_zipped_as_the_format_says(
    data: st.DataObject, length_bytes: int, control_bytes: int
) -> None:
    bits_def, max_visible = 2, data.draw(st.integers(0, 3))
    controls = data.draw(st.lists(st.integers(0, (1 << (8 * control_bytes)) - 1), max_size=30))
    visible = [word & 3 for word in controls if word & 3 <= max_visible]
    width = data.draw(st.integers(1, 9))
    lengths = [0 if definition else width for definition in visible]
    if length_bytes > 0:
        sizes = [data.draw(st.integers(0, length)) for length in lengths]
    else:
        sizes = [width] * len(visible)
    values = [bytes([index + 1] * size) for index, size in enumerate(sizes)]
    expected = plain_entries(controls, values, control_bytes, bits_def, max_visible, length_bytes)
    joined = np.frombuffer(b"".join(values) + b"?", np.uint8).copy()
    out = np.empty(sum(map(len, expected)), np.uint8)
    entries = np.empty(len(controls) + 1, np.int64)
    zip_entries(
        np.array(controls, np.uint32),
        control_bytes,
        bits_def,
        max_visible,
        address_of(joined),
        0 if length_bytes > 0 else width,
        length_bytes,
        np.cumsum([0, *sizes]),
        out,
        entries,
    )
    assert out.tobytes() == b"".join(expected)
    assert entries.tolist() == np.cumsum([0, *map(len, expected)]).tolist()


def plain_levels(rows: list[list[Numbers] | None]) -> tuple[list[int], list[str]]:
    """Return repetition levels of lists of lists, and what each entry stands for."""
    levels: list[tuple[int, str]] = []
    for row in rows:
        if row is None or row == []:
            levels.append((2, "null row" if row is None else "empty row"))
            continue
        for index, inner in enumerate(row):
            begins = 2 if index == 0 else 1
            if inner is None or inner == []:
                levels.append((begins, "null list" if inner is None else "empty list"))
                continue
            for place, number in enumerate(inner):
                meaning = "null" if number is None else "value"
                levels.append((begins if place == 0 else 0, meaning))
    return [repetition for repetition, _ in levels], [meaning for _, meaning in levels]


numbers = st.none() | st.integers(0, 9)
inner_lists = st.none() | st.lists(numbers, max_size=4)


@given(st.lists(st.none() | st.lists(inner_lists, max_size=4), min_size=1, max_size=8))
def test_levels_of_nested_lists_are_those_of_a_plain_walk(rows: list[list[Numbers] | None]) -> None:
    array = pa.array(rows, pa.list_(pa.list_(pa.int8())))
    (field,) = schema_from_arrow(pa.schema([("c", array.type)])).fields
    ((_, leaf),) = shred(field, array)
    repetition, meanings = plain_levels(rows)
    assert leaf.repetition is not None
    assert leaf.repetition.tolist() == repetition
    number = {"value": 0}
    names = {None: ["null"], 1: ["null list", "empty list"], 2: ["null row", "empty row"]}
    for layer, (null, *empty) in zip(leaf.layers.layers, names.values(), strict=True):
        if layer.null_level is not None:
            number[null] = len(number)
        if layer.empty_level is not None:
            number[empty[0]] = len(number)
    if leaf.definition is None:
        assert set(meanings) == {"value"}
        assert set(leaf.layers.layers) <= {Layer.ALL_VALID_ITEM, Layer.ALL_VALID_LIST}
    else:
        assert leaf.definition.tolist() == [number[meaning] for meaning in meanings]
