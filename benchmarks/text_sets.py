"""Datasets of texts, built on demand beside the sets of vectors, and words to ask for in them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa

from benchmarks.synthetic_texts import Vocabulary, draw_lengths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.datasets import BenchmarkSet

UNIFORM_BELOW = 1_000_000
"""Upper end of the column ``u``, which is uniform."""

_NUM_WORDS = 150_000
_PLAIN = "plain"
_INDEXED = "indexed"
_FOLDER = "texts"
_SEED = 8
_ROWS_AT_ONCE = 50_000
_NUM_PAIRS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Datasets with columns ``id``, ``u`` and ``text``, and what their texts hold.

    Parameters
    ----------
    root
        Folder of the datasets: one without an index, one with an INVERTED on ``text`` and a BTREE
        on ``u``.
    words
        All words of the vocabulary, the most frequent first.
    document_shares
        The share of the documents that hold each word, float64 of the same length.
    pairs
        Pairs of neighbouring words from the texts, as numbers of words, int64 ``(n, 2)``.
    """

    root: Path
    words: list[str]
    document_shares: NDArray[np.float64]
    pairs: NDArray[np.int64]

    @property
    def indexed(self) -> Path:
        """The dataset to search."""
        return self.root / f"{_INDEXED}.lance"

    def link_plain(self, path: Path) -> None:
        """Make a dataset of the same rows without an index."""
        shutil.copytree(self.root / _PLAIN, path, copy_function=os.link)


def open_texts(bench: BenchmarkSet) -> Texts:
    """Return as many texts as a set has rows, building what the cache does not have."""
    root = bench.root / _FOLDER
    vocabulary = Vocabulary.of(_NUM_WORDS)
    if not (root / _PLAIN).exists():
        print("writing texts", flush=True)
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        _write(root, vocabulary, bench.size.num_rows)
    if not (root / f"{_INDEXED}.lance").exists():
        print("building the inverted index", flush=True)
        _index(root)
    with np.load(root / "words.npz") as held:
        return Texts(root, vocabulary.words, held["document_shares"], held["pairs"])


def _index(root: Path) -> None:
    unfinished = root / f"{_INDEXED}.building"
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(root / _PLAIN, unfinished, copy_function=os.link)
    dataset = lance.dataset(str(unfinished))
    dataset.create_scalar_index("text", "INVERTED", with_position=True)
    dataset.create_scalar_index("u", "BTREE")
    unfinished.rename(root / f"{_INDEXED}.lance")


def _write(root: Path, vocabulary: Vocabulary, num_rows: int) -> None:
    counts = np.zeros(len(vocabulary.words), np.int64)
    pairs: list[NDArray[np.int64]] = []
    schema = pa.schema([("id", pa.int64()), ("u", pa.int64()), ("text", pa.string())])
    batches = _batches(vocabulary, num_rows, schema, counts, pairs)
    unfinished = root / f"{_PLAIN}.building"
    lance.write_dataset(batches, str(unfinished), schema=schema)
    np.savez(root / "words.npz", document_shares=counts / num_rows, pairs=np.concatenate(pairs))
    unfinished.rename(root / _PLAIN)


def _batches(
    vocabulary: Vocabulary,
    num_rows: int,
    schema: pa.Schema,
    counts: NDArray[np.int64],
    pairs: list[NDArray[np.int64]],
) -> Iterator[pa.RecordBatch]:
    """Draw rows; adds to ``counts`` the documents of each word, to ``pairs`` some neighbours."""
    generator = np.random.default_rng(_SEED)
    for start in range(0, num_rows, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, num_rows))
        drawn = vocabulary.draw(draw_lengths(len(rows), generator), generator)
        counts += drawn.document_counts()
        pairs.append(drawn.neighbours(max(1, len(rows) * _NUM_PAIRS // num_rows), generator))
        uniform = generator.integers(UNIFORM_BELOW, size=len(rows))
        columns = [pa.array(rows), pa.array(uniform), drawn.to_arrow()]
        yield pa.record_batch(columns, schema=schema)
