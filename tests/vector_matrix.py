"""Tables with every kind of vector index, in every state that a table can be in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import lance
import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DIMENSION = 32
NUM_PARTITIONS = 6
FIRST_ROWS = 1_600  # pylance makes at most one partition of PQ for each 256 rows
MORE_ROWS = 300
TENTHS_OF_PERCENT = 1_000

KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 8},
    "IVF_PQ 4 bit": {"num_sub_vectors": 16, "num_bits": 4},
    "IVF_SQ": {},
    "IVF_RQ 1 bit": {"num_bits": 1},
    "IVF_RQ 5 bit": {"num_bits": 5},
    "IVF_RQ 8 bit": {"num_bits": 8},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 8},
    "IVF_FLAT bytes": {},
    "IVF_HNSW_FLAT bytes": {},
}
METRICS = ("l2", "cosine", "dot")
STATES = ("appended", "deleted", "compacted", "deferred")
VERSIONS = ("2.0", "2.1", "2.2")


@dataclass(frozen=True, slots=True)
class TableCase:
    """One table of the matrix; a kind of bytes is compared by hamming whatever the metric says."""

    kind: str
    metric: str
    num_segments: int
    state: str
    version: Literal["2.0", "2.1", "2.2"]

    @property
    def index_type(self) -> str:
        """The name by which pylance knows the type."""
        return self.kind.split(" ")[0]

    @property
    def has_bytes(self) -> bool:
        """Whether vectors are of uint8."""
        return self.kind.endswith("bytes")

    @property
    def own_metric(self) -> str:
        """The metric of the index."""
        return "hamming" if self.has_bytes else self.metric

    @property
    def num_added(self) -> int:
        """Segments beside the first; pylance 14.0.2 panics when it adds one of graphs of bytes."""
        return 0 if self.has_bytes and "HNSW" in self.kind else self.num_segments - 1


@dataclass(slots=True, eq=False)
class MatrixTable:
    """A table with columns ``id``, ``u`` and ``v``, and all vectors by id.

    ``u`` is spread evenly over ``0 .. 999``, so that ``u < p`` passes ``p`` in a thousand.
    """

    case: TableCase
    path: Path
    generator: np.random.Generator
    centres: NDArray[np.float64]
    vectors: list[NDArray[np.generic]] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        """Rows that were ever written."""
        return sum(map(len, self.vectors))

    def write(self, num_rows: int) -> None:
        """Append rows in two fragments."""
        vectors = self.draw(num_rows)
        ids = np.arange(self.num_rows, self.num_rows + num_rows)
        self.vectors.append(vectors)
        u = self.generator.permutation(num_rows) * TENTHS_OF_PERCENT // num_rows
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
        lance.write_dataset(
            pa.table({"id": ids, "u": u, "v": column}),
            str(self.path),
            mode="append" if self.path.exists() else "create",
            max_rows_per_file=(num_rows + 1) // 2,
            data_storage_version=self.case.version,
        )

    def draw(self, count: int) -> NDArray[np.generic]:
        """Return vectors near the centres, shape ``(count, d)``."""
        chosen = self.centres[self.generator.integers(len(self.centres), size=count)]
        noisy = chosen + self.generator.standard_normal(chosen.shape)
        if self.case.has_bytes:
            return np.clip(noisy * 20 + 128, 0, 255).astype(np.uint8)
        return noisy.astype(np.float32)

    def live(self) -> NDArray[np.int64]:
        """Return the ids of the rows that pylance sees."""
        ids: NDArray[np.int64] = (
            lance.dataset(str(self.path)).to_table(columns=["id"])["id"].to_numpy()
        )
        return ids


def build_table(path: Path, case: TableCase, seed: int = 11) -> MatrixTable:
    """Write, index and change a table as the case says."""
    generator = np.random.default_rng(seed)
    table = MatrixTable(case, path, generator, 3 * generator.standard_normal((20, DIMENSION)))
    table.write(FIRST_ROWS)
    dataset = lance.dataset(str(path))
    dataset.create_index(
        "v",
        case.index_type,
        metric=case.own_metric,
        num_partitions=NUM_PARTITIONS,
        **KINDS[case.kind],
    )
    for _ in range(case.num_added):
        table.write(MORE_ROWS)
        lance.dataset(str(path)).optimize.optimize_indices(num_indices_to_merge=0)
    _change(table)
    return table


def _change(table: MatrixTable) -> None:
    dataset = lance.dataset(str(table.path))
    if table.case.state == "appended":
        table.write(MORE_ROWS)
        return
    dataset.delete("id % 7 = 0")
    if table.case.state != "deleted":
        dataset.optimize.compact_files(
            target_rows_per_fragment=10_000,
            defer_index_remap=table.case.state == "deferred",
        )
        lance.dataset(str(table.path)).delete("id % 11 = 0")
