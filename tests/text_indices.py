"""Inverted indices that pylance built, opened by us, and what they must hold."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa

from lance_core.cache.byte_cache import ByteCache
from lance_core.index.text.segment import open_text_segment
from lance_core.io.open import open_store
from lance_core.io.scheduler import RangeScheduler
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lance_core.index.text.partition import TextPartition
    from lance_core.index.text.segment import TextSegment
    from lance_core.io.store import ObjectStore

Occurrences = dict[str, dict[int, list[int]]]
"""Positions by token and row."""

PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False, "ascii_folding": False}
"""Makes tokens of words in lower case what they are."""

CACHE_BYTES = 64 << 20


def texts(num: int, seed: int = 1) -> list[str | None]:
    """Return texts in which some words are in nearly all, and most in a few.

    Some texts are null or empty, and one has a word 300 times.
    """
    rng = np.random.default_rng(seed)
    words = [f"{chr(97 + at % 26)}{chr(97 + at // 26 % 26)}w{at}" for at in range(400)]
    weights = 1 / np.arange(1, len(words) + 1)
    made: list[str | None] = []
    for row in range(num):
        chosen = rng.choice(words, size=rng.integers(1, 40), p=weights / weights.sum())
        made.append(" ".join(chosen))
        if row % 41 == 7:
            made[-1] = None if row % 2 == 0 else ""
    made[num // 2] = " ".join(["often", "rare"] + ["often"] * 299)
    return made


def write_indexed(path: Path, column: Sequence[str | None], **parameters: Any) -> None:
    """Write texts in fragments of 500 rows, and an index."""
    table = pa.table({"t": pa.array(column, pa.string())})
    dataset = lance.write_dataset(table, str(path), max_rows_per_file=500)
    dataset.create_scalar_index("t", "INVERTED", **{**PLAIN, **parameters})


def open_text_segments(
    place: Path | ObjectStore, name: str = "t_idx", cache: ByteCache | None = None
) -> list[TextSegment]:
    """Open the segments of an index in the latest version."""
    store = place if not hasattr(place, "joinpath") else open_store(str(place))
    snapshot = open_snapshot(RangeScheduler(store))
    kept = ByteCache(CACHE_BYTES) if cache is None else cache
    return [
        open_text_segment(snapshot.index_place(each), each, kept)
        for each in snapshot.indices
        if each.name == name
    ]


def occurrences(rows: Mapping[int, str | None]) -> Occurrences:
    """Return what an index of rows must hold, by row id, if words are tokens."""
    found: Occurrences = defaultdict(dict)
    for row, text in rows.items():
        for position, word in enumerate((text or "").split()):
            found[word].setdefault(row, []).append(position)
    return dict(found)


def rows_of(path: Path, column: str = "t") -> dict[int, str | None]:
    """Return the live texts of a dataset by row id."""
    table = lance.dataset(str(path)).to_table(columns=[column], with_row_id=True)
    return dict(zip(table["_rowid"].to_pylist(), table[column].to_pylist(), strict=True))


def held_by(partition: TextPartition) -> Occurrences:
    """Return what a partition holds; positions are 0, 1, ... where it has none."""
    parts = list(partition.all_tokens())
    tokens = [token for keys, _ in parts for token in keys.to_pylist()]
    numbers = np.concatenate([each for _, each in parts]).tolist()
    assert tokens == sorted(tokens, key=str.encode)
    assert partition.token_ids(tokens).tolist() == numbers
    postings = partition.postings(numbers)
    lists = partition.positions(numbers) if partition.has_positions else []
    rows = partition.documents.row_ids()
    held: Occurrences = {}
    for index, token in enumerate(tokens):
        own = rows[postings[index].docs].tolist()
        counts = postings[index].frequencies.tolist()
        if partition.has_positions:
            list_ = lists[index]
            assert np.diff(list_.starts).tolist() == counts
            positions = [each.tolist() for each in np.split(list_.positions, list_.starts[1:-1])]
        else:
            positions = [list(range(count)) for count in counts]
        held[token] = dict(zip(own, positions, strict=True))
    return held


def held_by_all(segments: Sequence[TextSegment]) -> Occurrences:
    """Return what all partitions of segments hold together; no row may be in two."""
    held: Occurrences = defaultdict(dict)
    for segment in segments:
        for partition in segment.partitions:
            for token, rows in held_by(partition).items():
                assert held[token].keys().isdisjoint(rows)
                held[token].update(rows)
    return dict(held)


def without_positions(held: Occurrences) -> Occurrences:
    """Keep how many positions there are, and not which."""
    return {
        token: {row: list(range(len(positions))) for row, positions in rows.items()}
        for token, rows in held.items()
    }
