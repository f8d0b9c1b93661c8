"""Tables of texts that pylance indexed, in every state that a table can be in."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.synthetic_texts import Vocabulary, draw_lengths
from lance_core.index.text.stop_words import stop_words

if TYPE_CHECKING:
    from collections.abc import Container

    from numpy.typing import NDArray

WORDNET_VARIABLE = "TEXTS_WORDNET"
"""Names a Parquet file of 20,000 entries; the example dataset has some of them."""

TENTHS_OF_PERCENT = 1_000
_EXAMPLES = Path(__file__).parents[1] / "examples" / "data" / "wordnet.lance"
_LANGUAGE_ROWS = 3_000

SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "wordnet": ("wordnet", {}),
    "wordnet as it is": (
        "wordnet",
        {
            "base_tokenizer": "whitespace",
            "lower_case": False,
            "stem": False,
            "remove_stop_words": False,
            "ascii_folding": False,
            "max_token_length": None,
        },
    ),
    "wordnet n-grams": ("wordnet", {"base_tokenizer": "ngram"}),
    "wordnet code": ("wordnet", {"base_tokenizer": "code", "split_identifiers": True}),
    "generated": ("generated", {}),
    "generated, not stemmed": ("generated", {"stem": False, "remove_stop_words": False}),
    "German": ("German", {"language": "German"}),
    "French": ("French", {"language": "French", "remove_stop_words": False}),
    "Russian": ("Russian", {"language": "Russian"}),
}
"""What texts are made of, and how their tokens are."""
State = Literal["as built", "appended", "deleted", "deferred", "all"]
STATES: tuple[State, ...] = get_args(State)
"""``all``: rows were deleted, compaction was deferred, more were deleted, more were appended."""
NUM_SEGMENTS = (1, 3)
BLOCK_SIZES = (128, 256)


@dataclass(frozen=True, slots=True)
class TextCase:
    """One table; ``num_rows`` are written at most, as many as there are texts."""

    source: str
    block_size: int
    num_segments: int
    state: State
    num_rows: int

    @property
    def parameters(self) -> dict[str, Any]:
        """What the indices are asked for."""
        parameters = SOURCES[self.source][1]
        return {"with_position": True, "block_size": self.block_size, **parameters}


@dataclass(slots=True, eq=False)
class TextTable:
    """A table with columns ``id``, ``u``, ``t``, ``s`` and ``p``.

    ``t`` and ``s`` have indices as the case says, ``p`` has none; ``u`` is spread evenly over
    ``0 .. 999``. `ids_by_segment` tells which rows had which row ids as segments were made.
    """

    case: TextCase
    path: Path
    rows: pa.Table
    num_written: int = 0
    ids_by_segment: dict[str, dict[int, int]] = field(default_factory=dict)

    def write(self, share: float) -> None:
        """Append a share of the rows in two fragments."""
        part = self.rows.slice(self.num_written, int(share * len(self.rows)))
        self.num_written += len(part)
        lance.write_dataset(
            part,
            str(self.path),
            mode="append" if self.path.exists() else "create",
            max_rows_per_file=(len(part) + 1) // 2,
        )

    def open(self) -> lance.LanceDataset:
        """Open the latest version in pylance."""
        return lance.dataset(str(self.path))

    def note_segments(self) -> None:
        """Remember the rows of segments that are new."""
        dataset = self.open()
        for column in ("t", "s"):
            for segment in dataset.describe_indices():
                if segment.name != f"{column}_idx":
                    continue
                for each in segment.segments:
                    if str(each.uuid) not in self.ids_by_segment:
                        self.ids_by_segment[str(each.uuid)] = _ids(dataset, set(each.fragment_ids))


def build_table(path: Path, case: TextCase) -> TextTable:
    """Write, index and change a table as the case says."""
    table = TextTable(case, path, _rows(SOURCES[case.source][0], case.num_rows))
    table.write(0.7)
    dataset = table.open()
    for column in ("t", "s"):
        dataset.create_scalar_index(column, "INVERTED", **case.parameters)
    table.note_segments()
    for _ in range(case.num_segments - 1):
        table.write(0.08)
        table.open().optimize.optimize_indices(num_indices_to_merge=0)
        table.note_segments()
    _change(table)
    return table


def _change(table: TextTable) -> None:
    state = table.case.state
    if state in {"deleted", "deferred", "all"}:
        table.open().delete("id % 7 = 3")
    if state in {"deferred", "all"}:
        table.open().optimize.compact_files(
            target_rows_per_fragment=10_000_000, defer_index_remap=True
        )
        table.open().delete("id % 11 = 5")
    if state in {"appended", "all"}:
        table.write(0.1)
    if state == "all":
        table.open().delete("id % 13 = 6")


def _ids(dataset: lance.LanceDataset, fragment_ids: Container[int]) -> dict[int, int]:
    fragments = [each for each in dataset.get_fragments() if each.fragment_id in fragment_ids]
    rows = dataset.scanner(columns=["id"], with_row_id=True, fragments=fragments).to_table()
    return dict(zip(rows["_rowid"].to_pylist(), rows["id"].to_pylist(), strict=True))


@cache
def _rows(texts: str, most: int) -> pa.Table:
    """Return the rows of a table; a few texts are null, empty, or of one word only."""
    long, short = _wordnet() if texts == "wordnet" else _made(texts, most)
    num_rows = min(most, len(long))
    generator = np.random.default_rng(11)
    odd = generator.choice(num_rows, num_rows // 50, replace=False)
    long, short = long[:num_rows], short[:num_rows]
    odd_texts = pa.array([[None, "", "the", "-"][at % 4] for at in range(len(odd))], pa.string())
    is_odd = np.zeros(num_rows, bool)
    is_odd[odd] = True
    return pa.table(
        {
            "id": np.arange(num_rows),
            "u": generator.permutation(num_rows) * TENTHS_OF_PERCENT // num_rows,
            "t": pc.replace_with_mask(long, is_odd, odd_texts),
            "s": short,
            "p": short,
        }
    )


def _wordnet() -> tuple[pa.StringArray, pa.StringArray]:
    given = os.environ.get(WORDNET_VARIABLE)
    columns = ["text", "title"]
    if given is None:
        table = lance.dataset(str(_EXAMPLES)).to_table(columns=columns)
    else:
        table = pq.read_table(given, columns=columns)
    return table["text"].combine_chunks(), table["title"].combine_chunks()


def _made(texts: str, most: int) -> tuple[pa.StringArray, pa.StringArray]:
    generator = np.random.default_rng(12)
    if texts == "generated":
        vocabulary, num_rows = Vocabulary.of(max(2_000, most // 4)), most
    else:
        vocabulary, num_rows = _of_language(texts, generator), min(most, _LANGUAGE_ROWS)
    long = vocabulary.draw(draw_lengths(num_rows, generator), generator)
    short = vocabulary.draw(generator.integers(1, 5, num_rows), generator)
    return long.to_arrow(), short.to_arrow()


def _of_language(language: str, generator: np.random.Generator) -> Vocabulary:
    """Return words of a language: its stop words, and what two of them make together."""
    own: NDArray[np.str_] = np.array(sorted(stop_words(language)))
    made = np.char.add(generator.choice(own, 1_000), generator.choice(own, 1_000))
    words = generator.permutation(np.unique(np.concatenate([own, made]))).tolist()
    return Vocabulary(words, Vocabulary.of(len(words)).bounds)
