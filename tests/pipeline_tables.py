"""Tables for index jobs, and what must hold of their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from tests.pipeline_stages import LocalStages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.stages import Worker

DIMENSION = 16
WORDS = ("apple", "pear", "plum", "quince", "cherry")
_CENTRES = 3 * np.random.default_rng(5).standard_normal((40, DIMENSION))


def vectors_of(ids: Sequence[int] | NDArray[Any]) -> NDArray[np.float32]:
    """Return the vectors of rows, shape ``(n, 16)``: around forty places."""
    numbers = np.asarray(ids, np.int64)
    highest = int(numbers.max(initial=0)) + 1
    noise = np.random.default_rng(6).standard_normal((highest, DIMENSION))
    return (_CENTRES[numbers % len(_CENTRES)] + noise[numbers]).astype(np.float32)


def rows_of(ids: range) -> pa.Table:
    """Return rows by their ids."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "price": pa.array([each % 97 for each in ids], pa.int32()),
            "text": [f"{WORDS[each % 5]} {WORDS[each % 3]} n{each}" for each in ids],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors_of(ids).ravel()), DIMENSION),
        }
    )


def write(path: Path, ids: range, rows_of_fragment: int) -> lance_core.Dataset:
    """Add rows to a table, or make it."""
    return lance_core.write_dataset(
        path,
        rows_of(ids),
        mode="append" if path.exists() else "create",
        max_rows_per_file=rows_of_fragment,
    )


def nearest(path: Path, query: NDArray[Any], k: int = 10, **options: Any) -> list[int]:
    """Return the ids that our search finds by the index, in all partitions unless told."""
    found = lance_core.open_dataset(path).search(
        query, k, column="v", columns=["id"], **{"nprobes": 1000, **options}
    )
    ids: list[int] = found["id"].to_pylist()
    return ids


def exact(ids: NDArray[Any], query: NDArray[Any], k: int = 10) -> list[int]:
    """Return the nearest of some rows by brute force."""
    distances = ((vectors_of(ids) - query) ** 2).sum(axis=1)
    found: list[int] = ids[np.argsort(distances, kind="stable")[:k]].tolist()
    return found


def theirs(path: Path, query: NDArray[Any], k: int = 10, **options: Any) -> list[int]:
    """Return the ids that pylance finds by the index."""
    wanted = {"column": "v", "q": query, "k": k, "nprobes": 1000, **options}
    found: list[int] = (
        lance.dataset(str(path)).to_table(columns=["id"], nearest=wanted)["id"].to_pylist()
    )
    return found


def coverage_of(path: Path, name: str) -> list[list[int]]:
    """Return the fragments that each segment of an index names, in the order of the first."""
    segments = [
        each for each in lance_core.open_dataset(path).snapshot.indices if each.name == name
    ]
    return sorted(sorted(each.fragment_bitmap or ()) for each in segments)


class Interrupted(LocalStages):
    """Stages at whose end something happens, once each.

    Parameters
    ----------
    after
        What happens, by the name of the stage.
    """

    def __init__(self, **after: Callable[[], object]) -> None:
        super().__init__()
        self.after = {name.replace("_", "-"): each for name, each in after.items()}

    def run(
        self,
        name: str,
        items: Sequence[bytes],
        worker: Worker,
        *,
        weights: Sequence[int] | None = None,
    ) -> list[bytes]:
        results = super().run(name, items, worker, weights=weights)
        happens = self.after.pop(name, None)
        if happens is not None:
            happens()
        return results
