from __future__ import annotations

import string
from itertools import product
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from lance.query import MatchQuery

from lance_core.index.folding import fold_to_ascii

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


def test_every_character_becomes_what_pylance_makes_of_it(tmp_path: Path) -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    dataset = lance.write_dataset(pa.table({"text": [f"x{c}y" for c in characters]}), str(tmp_path))
    dataset.create_scalar_index(
        "text",
        "INVERTED",
        base_tokenizer="raw",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=True,
        max_token_length=None,
        with_position=False,
    )
    dataset = lance.dataset(str(tmp_path))
    rows: dict[str, list[int]] = {}
    for row, character in enumerate(characters):
        folded = fold_to_ascii(character)
        if folded.isascii():
            rows.setdefault(folded, []).append(row)
    assert len(rows) > 400
    # Letters and digits that only pylance knew of would be noticed among n-grams.
    for folded in {*rows, *map("".join, product(string.punctuation, repeat=2))}:
        found = dataset.to_table(
            columns=["_rowid", "_score"],
            full_text_query=MatchQuery(f"x{folded}y", "text"),
            limit=len(characters),
        )
        assert sorted(found["_rowid"].to_pylist()) == rows.get(folded, []), folded
