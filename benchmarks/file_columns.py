"""The columns that files are measured with: one kind per file, the same rows for both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

SEED = 20_261_128
BATCH_ROWS = 65_536
VOCABULARY = 20_000
MAX_WORDS = 24
MAX_ITEMS = 12
DIMENSION = 128


@dataclass(frozen=True, slots=True)
class FileCase:
    """Columns of one kind and ``num_rows`` rows; bars are for our time divided by the peer's."""

    name: str
    num_rows: int
    scan_bar: float | None
    write_bar: float | None = 2.0
    num_columns: int = 1

    def batches(self, num_rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, drawn anew from the seed; more or fewer than ``num_rows`` on request."""
        generator = np.random.default_rng(SEED)
        make = COLUMNS[self.name]
        total = self.num_rows if num_rows is None else num_rows
        for start in range(0, total, BATCH_ROWS):
            rows = min(BATCH_ROWS, total - start)
            names = [self.name, *(f"{self.name} {n}" for n in range(1, self.num_columns))]
            yield pa.record_batch({name: make(rows, start, generator) for name in names})


def _numbers(rows: int, start: int, generator: np.random.Generator) -> pa.Array:
    return pa.array(generator.integers(-(2**62), 2**62, rows))


def _sorted_numbers(rows: int, start: int, generator: np.random.Generator) -> pa.Array:
    return pa.array(np.arange(start, start + rows) * 3)


def _floats(rows: int, start: int, generator: np.random.Generator) -> pa.Array:
    return pa.array(generator.standard_normal(rows), mask=generator.random(rows) < 0.05)


def _vectors(rows: int, start: int, generator: np.random.Generator) -> pa.Array:
    values = generator.standard_normal(rows * DIMENSION, np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSION)


def _words(generator: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Draw words as text has them: few are frequent."""
    return np.minimum(generator.zipf(1.3, count), VOCABULARY) - 1


def _vocabulary() -> NDArray[np.str_]:
    generator = np.random.default_rng(SEED)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    lengths = generator.integers(2, 11, VOCABULARY)
    return np.array(
        ["".join(letters[np.minimum(generator.geometric(0.12, n) - 1, 25)]) for n in lengths]
    )


def _prose(rows: int, start: int, generator: np.random.Generator) -> pa.Array:
    lengths = generator.integers(3, MAX_WORDS, rows)
    words = pa.array(_vocabulary()).take(pa.array(_words(generator, int(lengths.sum()))))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), words), " ")


def _labels(rows: int, start: int, generator: np.random.Generator) -> pa.Array:
    names = pa.array([f"category number {number}" for number in range(40)])
    return names.take(pa.array(generator.integers(0, 40, rows)))


def _lists(rows: int, start: int, generator: np.random.Generator) -> pa.Array:
    lengths = generator.integers(0, MAX_ITEMS, rows)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    count = int(offsets[-1])
    parts = {
        "weight": pa.array(generator.standard_normal(count, np.float32)),
        "node": pa.array(generator.integers(0, 1 << 20, count).astype(np.int32)),
    }
    items = pa.StructArray.from_arrays(list(parts.values()), list(parts))
    return pa.ListArray.from_arrays(
        pa.array(offsets, mask=np.append(generator.random(rows) < 0.02, False)), items
    )


COLUMNS: dict[str, Callable[[int, int, np.random.Generator], pa.Array]] = {
    "int64": _numbers,
    "sorted int64": _sorted_numbers,
    "nullable double": _floats,
    "vectors": _vectors,
    "prose": _prose,
    "labels": _labels,
    "list of structs": _lists,
}
