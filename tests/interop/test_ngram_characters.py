from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from pyroaring import BitMap64

from lance_core.index.folding import fold_to_ascii
from lance_core.index.scalar.trigrams import trigrams

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def tokens_of_rows(texts: list[str], folder: Path) -> dict[int, list[int]]:
    """Return the tokens that pylance gives to texts, of those that have any."""
    dataset = lance.write_dataset(pa.table({"text": texts}), str(folder))
    dataset.create_scalar_index("text", "NGRAM")
    (path,) = folder.glob("_indices/*/ngram_postings.lance")
    stored = LanceFileReader(str(path)).read_all().to_table()
    tokens: dict[int, list[int]] = {}
    for token, postings in zip(*(column.to_pylist() for column in stored.columns), strict=True):
        for row in BitMap64.deserialize(postings):
            tokens.setdefault(row, []).append(token)
    return tokens


def test_every_character_is_folded_and_numbered_as_by_pylance(tmp_path: Path) -> None:
    between = [f"qx{character}yz" for character in CHARACTERS]
    stored = tokens_of_rows(between, tmp_path)
    found = 0
    for row, character in enumerate(CHARACTERS):
        if row in stored or fold_to_ascii(character.lower()).isascii():
            own = trigrams(between[row]).tolist()
            assert own == [] or own == stored[row], character
            found += len(own) > 0
            whole = fold_to_ascii(between[row].lower())
            assert expected_tokens(whole) == stored.get(row, []), character
    assert found > 450


def expected_tokens(folded: str) -> list[int]:
    """Return the numbers of the trigrams of a folded text; capitals count in bytes."""
    digits = [
        None if not (c.isascii() and c.isalnum()) else int(c) + 1 if c.isdigit() else ord(c) - 86
        for c in folded
    ]
    windows = zip(digits, digits[1:], digits[2:], strict=False)
    return sorted(
        {
            (a % 256 * 37 + b % 256) * 37 + c % 256
            for a, b, c in windows
            if a is not None and b is not None and c is not None
        }
    )


def test_texts_have_the_trigrams_of_their_parts(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    alphabet = [*"abcXYZ019 -_.'", *"éÀßŁİΣς½ﬁⱽ№", "e\u0301", "\U0001ccd6", "\0", "\r\n"]
    texts = ["".join(generator.choice(alphabet, length)) for length in range(60) for _ in range(40)]
    stored = tokens_of_rows(texts, tmp_path)
    for row, text in enumerate(texts):
        assert expected_tokens(fold_to_ascii(text.lower())) == stored.get(row, []), text
        start, stop = sorted(generator.integers(0, len(text) + 1, 2).tolist())
        assert set(trigrams(text[start:stop]).tolist()) <= set(stored.get(row, [])), text
