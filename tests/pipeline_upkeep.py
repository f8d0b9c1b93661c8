"""Tables with an index of each kind, kept by jobs, and what must hold after each of them.

Row ``i`` has the vector, the key, the colour and the words that its id says, so that brute force
needs the ids of the live rows only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

import lance_core
from lance_core.index.coverage import effective_coverage
from lance_core.table.reuse_of_version import reuse_of
from tests.neighbour_checks import exact_distances

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

DIMENSION, NUM_PARTITIONS = 16, 3
CENTRES = np.random.default_rng(3).standard_normal((20, DIMENSION))
NOISE = np.random.default_rng(4).standard_normal((4000, DIMENSION))
VECTORS = (CENTRES[np.arange(4000) % 20] + 0.4 * NOISE).astype(np.float32)
NUM_COLOURS, NUM_WORDS = 7, 23

PARAMETERS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {"num_partitions": NUM_PARTITIONS},
    "IVF_PQ": {"num_partitions": NUM_PARTITIONS, "num_sub_vectors": 4},
    "IVF_SQ": {"num_partitions": NUM_PARTITIONS},
    "IVF_RQ": {"num_partitions": NUM_PARTITIONS},
    "IVF_HNSW_SQ": {"num_partitions": NUM_PARTITIONS},
    "BTREE": {},
    "BITMAP": {},
    "INVERTED": {},
}
COLUMNS = {"BTREE": "key", "BITMAP": "colour", "INVERTED": "words"}
COLUMNS |= {kind: kind.lower() for kind in PARAMETERS if kind.startswith("IVF")}
WITHOUT_GRAPH = tuple(kind for kind in PARAMETERS if "HNSW" not in kind)


def rows(ids: Sequence[int]) -> pa.Table:
    """Return the rows of some ids."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[list(ids)].ravel()), DIMENSION)
    return pa.table(
        {
            "id": pa.array(list(ids), pa.int64()),
            "key": pa.array([each * 3 for each in ids], pa.int64()),
            "colour": pa.array([each % NUM_COLOURS for each in ids], pa.int32()),
            "words": pa.array([f"row word{each % NUM_WORDS}" for each in ids]),
            **{COLUMNS[kind]: vectors for kind in PARAMETERS if kind.startswith("IVF")},
        }
    )


def made(root: Path, num_rows: int = 600, rows_per_file: int = 100, **options: Any) -> Kept:
    """Make a table without an index by pylance."""
    lance.write_dataset(
        rows(range(num_rows)), str(root), max_rows_per_file=rows_per_file, **options
    )
    return Kept(root, BitMap(range(num_rows)))


@dataclass(eq=False)
class Kept:
    """A table, and the ids of its live rows."""

    root: Path
    ids: BitMap

    @property
    def dataset(self) -> lance_core.Dataset:
        return lance_core.open_dataset(self.root)

    def index(self, *kinds: str) -> None:
        """Build indices, named by their kind."""
        for kind in kinds:
            self.dataset.create_index(
                COLUMNS[kind], kind, name=f"of_{kind.lower()}", **PARAMETERS[kind]
            )

    def append(self, ids: Sequence[int], *, by_pylance: bool = False) -> None:
        """Append rows; pylance then names in indices the fragments that their rows moved to."""
        if by_pylance:
            lance.write_dataset(rows(ids), str(self.root), mode="append")
        else:
            self.dataset.append(rows(ids))
        self.ids |= BitMap(ids)

    def delete(self, ids: Iterable[int]) -> None:
        chosen = BitMap(ids) & self.ids
        self.dataset.delete(f"id IN ({', '.join(map(str, chosen))})")
        self.ids -= chosen

    def check(self, *kinds: str, pylance: bool = True) -> None:
        """Check rows and answers by some indices, ours and pylance's."""
        live = list(self.ids)
        readers: list[Reader] = [Ours(self.root)]
        if pylance:
            readers.append(Theirs(self.root))
        for reader in readers:
            assert sorted(reader.all_ids()) == live
            for kind in kinds:
                check_kind(reader, kind, live)

    def uncovered(self, kind: str) -> list[int]:
        """Return the live fragments that no segment of an index covers."""
        snapshot = self.dataset.snapshot
        live = BitMap(snapshot.fragments_by_id)
        history = reuse_of(snapshot.scheduler, snapshot.manifest)
        segments = [each for each in snapshot.indices if each.name == f"of_{kind.lower()}"]
        assert len(segments) > 0
        covered = [effective_coverage(each, live, history) for each in segments]
        return list(live - BitMap.union(BitMap(), *covered))


class Reader:
    """How a library is asked; all answers are ids."""

    name = ""

    def all_ids(self) -> list[int]:
        raise NotImplementedError

    def where(self, condition: str) -> list[int]:
        raise NotImplementedError

    def with_word(self, word: str) -> list[int]:
        raise NotImplementedError

    def nearest(
        self, column: str, query: NDArray[np.float32], k: int, refine_factor: int | None
    ) -> list[int]:
        raise NotImplementedError


class Ours(Reader):
    name = "ours"

    def __init__(self, root: Path) -> None:
        self._dataset = lance_core.open_dataset(root)

    def all_ids(self) -> list[int]:
        found: list[int] = self._dataset.scan(["id"]).read_all()["id"].to_pylist()
        return found

    def where(self, condition: str) -> list[int]:
        found: list[int] = self._dataset.scan(["id"], filter=condition).read_all()["id"].to_pylist()
        return found

    def with_word(self, word: str) -> list[int]:
        found = self._dataset.search_text(word, 5000, columns=["id"])
        ids: list[int] = found["id"].to_pylist()
        return ids

    def nearest(
        self, column: str, query: NDArray[np.float32], k: int, refine_factor: int | None
    ) -> list[int]:
        found = self._dataset.search(
            query, k, column=column, columns=["id"], nprobes=100, refine_factor=refine_factor
        )
        ids: list[int] = found["id"].to_pylist()
        return ids


class Theirs(Reader):
    name = "pylance"

    def __init__(self, root: Path) -> None:
        self._dataset: Any = lance.dataset(str(root))

    def all_ids(self) -> list[int]:
        return self._ids()

    def where(self, condition: str) -> list[int]:
        plan = self._dataset.scanner(columns=["id"], filter=condition).explain_plan()
        assert "ScalarIndexQuery" in plan
        return self._ids(filter=condition)

    def with_word(self, word: str) -> list[int]:
        return self._ids(full_text_query=word, limit=5000)

    def nearest(
        self, column: str, query: NDArray[np.float32], k: int, refine_factor: int | None
    ) -> list[int]:
        wanted: dict[str, Any] = {"column": column, "q": query, "k": k, "nprobes": 100}
        if refine_factor is not None:
            wanted["refine_factor"] = refine_factor
        scanner = self._dataset.scanner(columns=["id"], nearest=wanted)
        assert "ANNSubIndex" in scanner.explain_plan(verbose=True)
        return self._ids(nearest=wanted)

    def _ids(self, **asked: Any) -> list[int]:
        found: list[int] = self._dataset.to_table(columns=["id"], **asked)["id"].to_pylist()
        return found


def check_kind(reader: Reader, kind: str, live: Sequence[int]) -> None:
    """Compare answers by an index with brute force."""
    told = f"{kind} by {reader.name}"
    if kind == "BTREE":
        for start in (0, 300, 1000, 1701):
            keys = range(start, start + 90)
            found = reader.where(f"key >= {keys.start} AND key < {keys.stop}")
            assert sorted(found) == [each for each in live if each * 3 in keys], told
        for each in (live[0], live[-1], live[len(live) // 2]):
            assert reader.where(f"key = {each * 3}") == [each], told
    elif kind == "BITMAP":
        for colour in range(NUM_COLOURS):
            expected = [each for each in live if each % NUM_COLOURS == colour]
            assert sorted(reader.where(f"colour = {colour}")) == expected, told
    elif kind == "INVERTED":
        for number in range(0, NUM_WORDS, 4):
            expected = [each for each in live if each % NUM_WORDS == number]
            assert sorted(reader.with_word(f"word{number}")) == expected, told
    else:
        check_nearest(reader, kind, live, told)


def check_nearest(reader: Reader, kind: str, live: Sequence[int], told: str) -> None:
    """Compare nearest rows with brute force; codes find the same, once they are refined."""
    vectors = VECTORS[list(live)]
    is_graph = "HNSW" in kind
    found_share: list[float] = []
    for place in range(0, len(live), max(len(live) // 5, 1)):
        query = VECTORS[live[place]] + np.float32(0.01)
        order = np.argsort(exact_distances(vectors, query, "l2"), kind="stable")[:10]
        expected = [live[each] for each in order.tolist()]
        found = reader.nearest(COLUMNS[kind], query, 10, 30)
        assert len(found) == len(set(found)) == 10, told
        assert set(found) <= set(live), told
        found_share.append(len(set(found) & set(expected)) / 10)
    assert np.mean(found_share) >= (0.9 if is_graph else 1), told
    if not is_graph:  # a walk need not reach every row
        everything = reader.nearest(COLUMNS[kind], VECTORS[live[0]], len(live) + 50, None)
        assert sorted(everything) == list(live), told
