"""Graphs that pylance built, walked by both: the same rows at the same distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InvalidRequestError
from lance_core.index.vector.hnsw import HnswGraph
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.query.request import VectorQuery
from tests.indexed_table import IndexedTable
from tests.neighbour_checks import assert_same_neighbours, exact_distances, scale_of, tied_at
from tests.opened_segment import open_segment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    import lance_core

pytestmark = pytest.mark.interop

NUM_ROWS, DIMENSION, NUM_PARTITIONS = 1_800, 16, 3
KINDS: Mapping[str, Mapping[str, Any]] = {
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 8},
    "IVF_HNSW_PQ 4 bit": {"num_sub_vectors": 8, "num_bits": 4},
}
METRICS = ("l2", "cosine", "dot")
# Half of a graph, a twentieth (few enough to be scanned instead), nearly all, a fifth.
SHARES = (None, 500, 50, 950, 200)
SEARCHES = ((1, None, 1), (5, 5, 3), (10, None, 3), (10, 60, 2), (40, None, 1))


class Table(IndexedTable):
    """Answers to the same query are compared."""

    def compare(
        self,
        ours: lance_core.Dataset,
        query: NDArray[np.float32],
        k: int,
        ef: int | None,
        nprobes: int,
        *,
        share: int | None = None,
        mode: Any = "normal",
        fast_search: bool = False,
        tolerance: float = 1e-5,
        doubtful: Collection[int] = (),
        **options: Any,
    ) -> pa.Table:
        """Ask both and compare; return our answer."""
        condition = None if share is None else f"u < {share}"
        answer = ours.run(
            VectorQuery(
                vectors=query[None],
                k=k,
                ef=ef,
                columns=("id", "_distance"),
                min_probes=nprobes,
                max_probes=nprobes,
                filter=condition,
                approx_mode=mode,
                fast_search=fast_search,
                **options,
            )
        ).table
        bounds = (options.pop("lower_bound", None), options.pop("upper_bound", None))
        nearest = {
            "column": "v",
            "q": query.astype(self.vectors.dtype),
            "k": k,
            "nprobes": nprobes,
            "approx_mode": mode,
            **({} if ef is None else {"ef": ef}),
            **({} if bounds == (None, None) else {"distance_range": bounds}),
            **options,
        }
        expected = self.theirs.to_table(
            nearest=nearest,
            filter=condition,
            prefilter=True,
            fast_search=fast_search,
            columns=["id", "_distance"],
        )
        scale = scale_of(expected["_distance"].to_numpy(), query, self.metric)
        assert_same_neighbours(
            answer, expected, scale=scale, tolerance=tolerance, doubtful=doubtful
        )
        return answer

    def tied(
        self,
        ours: lance_core.Dataset,
        query: NDArray[np.float32],
        k: int,
        ef: int | None,
        nprobes: int,
        *,
        tolerance: float,
    ) -> list[int]:
        """Return the rows of which codes do not tell whether walks find them among the first."""
        width = k + k // 2 if ef is None else ef  # the same walk, and all that it keeps
        estimates = ours.search(
            query, width, ef=width, columns=["id"], nprobes=nprobes, fast_search=True
        )
        scale = scale_of(estimates["_distance"].to_numpy(), query, self.metric)
        return tied_at(estimates, k, slack=tolerance * scale)


def write_rows(
    path: Path, vectors: NDArray[np.generic], first: int = 0, version: Any = "2.1"
) -> None:
    ids = np.arange(first, first + len(vectors))
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    lance.write_dataset(
        pa.table({"id": ids, "u": ids * 619 % 1_000, "v": column}),
        str(path),
        mode="append" if first > 0 else "create",
        max_rows_per_file=len(vectors) // 2,
        data_storage_version=version,
    )


def draw(num_rows: int, seed: int = 7) -> NDArray[np.float32]:
    centres = 3 * np.random.default_rng(1).standard_normal((20, DIMENSION))
    generator = np.random.default_rng(seed)
    chosen = centres[generator.integers(20, size=num_rows)]
    return (chosen + generator.standard_normal(chosen.shape)).astype(np.float32)


def build(
    path: Path,
    kind: str,
    metric: str,
    *,
    vectors: NDArray[np.generic] | None = None,
    version: Any = "2.1",
    **options: Any,
) -> Table:
    vectors = draw(NUM_ROWS) if vectors is None else vectors
    write_rows(path, vectors, version=version)
    given = {"num_partitions": NUM_PARTITIONS, **KINDS[kind], **options}
    lance.dataset(str(path)).create_index("v", kind.partition(" ")[0], metric=metric, **given)
    return Table(path, metric, vectors)


@pytest.fixture(scope="module", params=[(k, m) for k in KINDS for m in METRICS], ids=" ".join)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    kind, metric = request.param
    return build(tmp_path_factory.mktemp("hnsw") / "t.lance", kind, metric)


def test_walks_find_what_those_of_pylance_find(table: Table) -> None:
    ours = table.ours()
    for query in table.queries(12):
        for k, ef, nprobes in SEARCHES:
            assert table.compare(ours, query, k, ef, nprobes).num_rows == k


@pytest.mark.parametrize("mode", ["normal", "fast"])
def test_filtered_walks_find_what_those_of_pylance_find(table: Table, mode: str) -> None:
    ours = table.ours()
    for query in table.queries(3):
        for share in SHARES:
            for k, ef, nprobes in SEARCHES:
                table.compare(ours, query, k, ef, nprobes, share=share, mode=mode)


def test_ranges_of_distances_are_kept(table: Table) -> None:
    ours = table.ours()
    for query in table.queries(3):
        whole = table.compare(ours, query, 40, None, 3)["_distance"].to_numpy()
        bounds: dict[str, Any] = {
            "lower_bound": float(whole[4]) + 1e-3,
            "upper_bound": float(whole[30]) + 1e-3,
        }
        one_sided = [{key: value} for key, value in bounds.items()]
        for given in (bounds, *one_sided):
            for mode, share in (("normal", None), ("fast", 500)):
                table.compare(ours, query, 10, 30, 3, mode=mode, share=share, **given)


def test_walks_with_a_refine_factor_find_what_those_of_pylance_find(table: Table) -> None:
    ours = table.ours()
    for query in table.queries(8):
        estimates = table.compare(ours, query, 31, 45, 3)["_distance"].to_numpy()
        # Which of several rows at the same estimate are refined is not promised.
        if estimates[30] - estimates[29] > 1e-4 * abs(estimates[29]):
            table.compare(ours, query, 10, 45, 3, refine_factor=3)


def test_a_walk_that_would_keep_too_few_rows_is_refused(table: Table) -> None:
    with pytest.raises(InvalidRequestError, match="at least k times the refine factor, 20"):
        table.ours().search(table.queries(1)[0], 10, ef=19, refine_factor=2)


def test_rows_that_are_skipped_widen_a_walk(table: Table) -> None:
    ours, query = table.ours(), table.queries(1)[0]
    whole = ours.search(query, 30, ef=30, columns=["id"], nprobes=3)
    assert ours.search(query, 10, ef=10, offset=20, columns=["id"], nprobes=3) == whole[20:]


def test_without_a_graph_ef_means_nothing(table: Table) -> None:
    found = table.ours().search(table.queries(1)[0], 10, ef=1, use_index=False)
    assert found.num_rows == 10


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_all_versions_are_searched(tmp_path: Path, kind: str, version: str) -> None:
    table = build(tmp_path / "t.lance", kind, "l2", version=version)
    ours = table.ours()
    for query in table.queries(4):
        for k, ef, nprobes in SEARCHES:
            table.compare(ours, query, k, ef, nprobes)


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_rows_are_walked_through(tmp_path: Path, kind: str) -> None:
    table = build(tmp_path / "t.lance", kind, "l2")
    table.theirs.delete("id % 3 = 0")
    ours = table.ours()
    for query in table.queries(4):
        for k, ef, nprobes in SEARCHES:
            for mode in ("normal", "fast"):
                answer = table.compare(ours, query, k, ef, nprobes, mode=mode)
                assert answer.num_rows == k
                assert (answer["id"].to_numpy() % 3 != 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_two_segments_are_walked_one_after_the_other(tmp_path: Path, kind: str) -> None:
    table = build(tmp_path / "t.lance", kind, "cosine")
    write_rows(table.path, draw(600, seed=8), first=NUM_ROWS)
    table.theirs.optimize.optimize_indices(num_indices_to_merge=0)
    write_rows(table.path, draw(100, seed=9), first=NUM_ROWS + 600)
    ours = table.ours()
    for query in table.queries(4):
        for k, ef, nprobes in SEARCHES:
            table.compare(ours, query, k, ef, nprobes, fast_search=True, tolerance=2e-5)
            # Beside rows without an index the first of the walks are ranked by their vectors.
            tied = table.tied(ours, query, k, ef, nprobes, tolerance=2e-5)
            table.compare(ours, query, k, ef, nprobes, tolerance=2e-5, doubtful=tied)


def test_an_empty_partition_is_passed_over(tmp_path: Path) -> None:
    centroids = np.array(draw(3, seed=3))
    centroids[1] = 1_000
    column = pa.FixedSizeListArray.from_arrays(pa.array(centroids.ravel()), DIMENSION)
    for kind in ("IVF_HNSW_FLAT", "IVF_HNSW_SQ"):
        table = build(tmp_path / kind, kind, "l2", ivf_centroids=column)
        ours = table.ours()
        for query in (*table.queries(3), np.full(DIMENSION, 900, np.float32)):
            for nprobes in (1, 3):
                table.compare(ours, query, 10, None, nprobes)


@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
def test_rows_that_a_deferred_compaction_dropped_stay_in_the_graph(
    tmp_path: Path, kind: str
) -> None:
    table = build(tmp_path / "t.lance", kind, "l2")
    table.theirs.delete("id % 4 = 1")
    table.theirs.optimize.compact_files(
        target_rows_per_fragment=10_000, defer_index_remap=True, materialize_deletions_threshold=0
    )
    query = table.queries(1)[0]
    with pytest.raises(ValueError, match="HNSW graph has"):  # so fails pylance
        table.theirs.to_table(nearest={"column": "v", "q": query, "k": 5, "nprobes": 3})
    live = np.arange(NUM_ROWS)[np.arange(NUM_ROWS) % 4 != 1]
    ours = table.ours()
    for query in table.queries(6):
        distances = exact_distances(table.vectors[live].astype(np.float32), query, "l2")
        nearest = np.argsort(distances)[:20]
        found = ours.search(query, 20, columns=["id"], nprobes=3, ef=NUM_ROWS, refine_factor=4)
        expected = pa.table(
            {"id": live[nearest], "_distance": distances[nearest].astype(np.float32)}
        )
        scale = scale_of(expected["_distance"].to_numpy(), query, "l2")
        assert_same_neighbours(found, expected, scale=scale)


def test_a_deferred_compaction_without_dropped_rows_changes_nothing(tmp_path: Path) -> None:
    table = build(tmp_path / "t.lance", "IVF_HNSW_SQ", "l2")
    table.theirs.optimize.compact_files(target_rows_per_fragment=10_000, defer_index_remap=True)
    ours = table.ours()
    for query in table.queries(4):
        for k, ef, nprobes in SEARCHES:
            table.compare(ours, query, k, ef, nprobes)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float16, 5e-3), (np.float64, 1e-5)], ids=["float16", "float64"]
)
def test_other_float_types_are_walked_in_float32(
    tmp_path: Path, dtype: type[np.floating], tolerance: float
) -> None:
    table = build(tmp_path / "t.lance", "IVF_HNSW_FLAT", "l2", vectors=draw(900).astype(dtype))
    ours = table.ours()
    for query in table.queries(6):
        table.compare(ours, query, 10, 60, 3, tolerance=tolerance)


@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
def test_rows_are_walked_where_they_lie_in_a_local_file(tmp_path: Path, kind: str) -> None:
    vectors = np.tile(draw(900), 16)  # wide enough to lie there row after row
    table = build(tmp_path / "t.lance", kind, "l2", vectors=vectors)
    local = open_segment(open_store(str(table.path)))
    held = local.bound.acquire(np.arange(NUM_PARTITIONS))
    for block in held.blocks:
        rows, *links = block.owners
        assert not isinstance(rows, np.ndarray)
        own = sum(each.nbytes for each in links if isinstance(each, np.ndarray))
        assert block.nbytes == block.ordinals.nbytes + own
    copied = open_segment(CountingStore(open_store(str(table.path))))
    ours = table.ours()
    for query in table.queries(4):
        table.compare(ours, query, 10, None, 2)
        a, b = local.search(query, 20, 2), copied.search(query, 20, 2)
        np.testing.assert_array_equal(a.row_ids, b.row_ids)
        np.testing.assert_array_equal(a.distances, b.distances)


def test_distances_beside_the_links_are_not_read(tmp_path: Path) -> None:
    table = build(tmp_path / "t.lance", "IVF_HNSW_SQ", "l2")
    store = CountingStore(open_store(str(table.path)), coalesce_gap=0)
    opened = open_segment(store)
    graph = opened.segment.graph
    assert isinstance(graph, HnswGraph)
    path = graph.reader.path
    store.reset()
    opened.search(table.queries(1)[0], 10, NUM_PARTITIONS)
    read = sum(end - start for name, start, end in store.ranges if name == path)
    (links,) = graph.reader.read(["__neighbors"], [(0, NUM_ROWS)])
    distances = 4 * len(links.flatten())
    assert 0 < read < (table.path / path).stat().st_size - distances


def test_bytes_are_walked_by_hamming_distance(tmp_path: Path) -> None:
    vectors = np.random.default_rng(4).integers(0, 256, (900, 9), np.uint8)
    table = build(tmp_path / "t.lance", "IVF_HNSW_FLAT", "hamming", vectors=vectors)
    ours = table.ours()
    for query in table.queries(6):
        for k, ef, nprobes in SEARCHES:
            table.compare(ours, query, k, ef, nprobes)


def test_ties_are_broken_in_walks_as_pylance_breaks_them(tmp_path: Path) -> None:
    # Whole numbers below 6 in four dimensions: most distances are shared by several rows.
    vectors = np.random.default_rng(5).integers(0, 6, (1_200, 4)).astype(np.float32)
    for kind in ("IVF_HNSW_FLAT", "IVF_HNSW_SQ"):
        table = build(tmp_path / kind, kind, "l2", vectors=vectors)
        ours = table.ours()
        for query in np.random.default_rng(6).integers(0, 6, (30, 4)).astype(np.float32):
            for k, ef in ((1, 1), (3, 3), (5, 12)):
                table.compare(ours, query, k, ef, 1)
