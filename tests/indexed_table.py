"""A table with a vector index, opened by pylance and by us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import numpy as np

import lance_core
from lance_core.query.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class IndexedTable:
    """A table with columns ``id``, ``u`` (spread over 0 to 999) and ``v``; ``vectors`` by id."""

    path: Path
    metric: str
    vectors: NDArray[np.generic]

    @property
    def theirs(self) -> lance.LanceDataset:
        return lance.dataset(str(self.path))

    def ours(self) -> lance_core.Dataset:
        """Open it, such that filtered searches are always made through the index."""
        return lance_core.open_dataset(str(self.path), session=Session(few_rows=0))

    def queries(self, count: int, seed: int = 5) -> NDArray[np.float32]:
        """Return stored vectors, those of floats with noise that the column could hold."""
        generator = np.random.default_rng(seed)
        chosen = self.vectors[generator.integers(len(self.vectors), size=count)].astype(np.float32)
        if self.vectors.dtype == np.uint8:
            return chosen
        noise = 0.5 * generator.standard_normal(chosen.shape)
        return (chosen + noise).astype(self.vectors.dtype).astype(np.float32)
