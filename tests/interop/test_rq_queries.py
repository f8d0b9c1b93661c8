"""RaBitQ codes that pylance wrote, searched by both: the same rows at the same distances."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.file import LanceFileReader, LanceFileWriter
from lance_core.index.vector.rabit_parameters import sign_factors
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.kernels.rq_rotation import rotate
from lance_core.proto import index_pb2, table_pb2
from lance_core.query.request import VectorQuery
from lance_core.table.transaction import CreateIndex
from tests.committed import apply, opened
from tests.indexed_table import IndexedTable
from tests.neighbour_checks import assert_same_neighbours, scale_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = pytest.mark.interop

NUM_ROWS, NUM_PARTITIONS = 1_000, 3
METRICS = ("l2", "cosine", "dot")
MODES = ("normal", "fast", "accurate")
DIMENSIONS = (8, 24, 40, 64, 96, 128)
SEARCHES = ((1, 1), (7, 2), (40, 3), (NUM_ROWS, 3))
TOLERANCE = 1e-4


class Table(IndexedTable):
    """Answers to the same query are compared."""

    def compare(
        self,
        ours: lance_core.Dataset,
        query: NDArray[np.float32],
        k: int,
        nprobes: int | None,
        *,
        mode: Any = "normal",
        condition: str | None = None,
        bounds: tuple[float | None, float | None] = (None, None),
        fast_search: bool = False,
        tolerance: float = TOLERANCE,
        refine_factor: int | None = None,
    ) -> pa.Table:
        """Ask both and compare; return our answer."""
        answer = ours.run(
            VectorQuery(
                vectors=query[None],
                k=k,
                columns=("id", "_distance"),
                min_probes=nprobes,
                max_probes=nprobes,
                filter=condition,
                approx_mode=mode,
                fast_search=fast_search,
                lower_bound=bounds[0],
                upper_bound=bounds[1],
                refine_factor=refine_factor,
            )
        ).table
        nearest = {
            "column": "v",
            "q": query.astype(self.vectors.dtype),
            "k": k,
            "nprobes": nprobes,
            "approx_mode": mode,
            "refine_factor": refine_factor,
        }
        if bounds != (None, None):
            nearest["distance_range"] = bounds
        expected = self.theirs.to_table(
            nearest=nearest,
            filter=condition,
            prefilter=True,
            fast_search=fast_search,
            columns=["id", "_distance"],
        )
        # Factors do not know the query, so that far from the origin large terms cancel.
        scale = scale_of(expected["_distance"].to_numpy(), query, self.metric)
        if self.metric == "l2":
            scale = max(scale, float(query @ query))
        assert_same_neighbours(answer, expected, scale=scale, tolerance=tolerance)
        return answer


def draw(num_rows: int, dimension: int, seed: int = 7) -> NDArray[np.float32]:
    centres = 2 * np.random.default_rng(1).standard_normal((20, dimension))
    generator = np.random.default_rng(seed)
    chosen = centres[generator.integers(20, size=num_rows)]
    return (chosen + generator.standard_normal(chosen.shape)).astype(np.float32)


def write_rows(
    path: Path, vectors: NDArray[np.floating], first: int = 0, version: Any = "2.1"
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


def build(
    path: Path,
    metric: str,
    num_bits: int,
    *,
    dimension: int = 24,
    vectors: NDArray[np.floating] | None = None,
    version: Any = "2.1",
    **options: Any,
) -> Table:
    vectors = draw(NUM_ROWS, dimension) if vectors is None else vectors
    write_rows(path, vectors, version=version)
    given = {"num_partitions": NUM_PARTITIONS, "num_bits": num_bits, **options}
    lance.dataset(str(path)).create_index("v", "IVF_RQ", metric=metric, **given)
    return Table(path, metric, vectors)


def compare_all(table: Table, searches: Sequence[tuple[int, int]] = SEARCHES, **given: Any) -> None:
    ours = table.ours()
    for query in table.queries(3):
        for mode in MODES:
            for k, nprobes in searches:
                table.compare(ours, query, k, nprobes, mode=mode, **given)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("num_bits", range(1, 10))
def test_codes_of_every_width_find_what_those_of_pylance_find(
    tmp_path: Path, num_bits: int, dimension: int
) -> None:
    # All pairs of widths; the metrics take turns over the dimensions of a number of bits.
    metric = METRICS[(num_bits + dimension // 8) % 3]
    compare_all(build(tmp_path / "t.lance", metric, num_bits, dimension=dimension))


@pytest.mark.parametrize("num_bits", [1, 5])
def test_codes_of_very_many_dimensions_find_what_those_of_pylance_find(
    tmp_path: Path, num_bits: int
) -> None:
    # More than 256 nibbles, whose numbers do not add up in 16 bits.
    compare_all(build(tmp_path / "t.lance", "l2", num_bits, dimension=1_160, num_partitions=1))


@pytest.mark.parametrize("num_bits", [1, 4])
def test_codes_stored_row_by_row_are_read(tmp_path: Path, num_bits: int) -> None:
    compare_all(build(tmp_path / "t.lance", "l2", num_bits, skip_transpose=True))


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("num_bits", [1, 3])
def test_files_of_all_versions_are_searched(tmp_path: Path, num_bits: int, version: str) -> None:
    compare_all(build(tmp_path / "t.lance", "cosine", num_bits, version=version))


@pytest.fixture(
    scope="module",
    params=[(m, b) for m in METRICS for b in (1, 5)],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    metric, num_bits = request.param
    return build(tmp_path_factory.mktemp("rq") / "t.lance", metric, num_bits)


@pytest.mark.parametrize("share", [5, 50, 500, 990])
def test_only_rows_that_pass_a_filter_take_places(table: Table, share: int) -> None:
    compare_all(table, SEARCHES[1:], condition=f"u < {share}")


def test_ranges_of_distances_are_kept(table: Table) -> None:
    ours = table.ours()
    for query in table.queries(3):
        whole = table.compare(ours, query, 60, 3)["_distance"].to_numpy()
        # Halfway between two distances, so that no rounding decides.
        lower, upper = (float((whole[i] + whole[i + 1]) / 2) for i in (4, 40))
        for bounds in ((lower, upper), (lower, None), (None, upper)):
            for mode in MODES:
                table.compare(ours, query, 20, 3, mode=mode, bounds=bounds)


def test_candidates_are_ranked_by_exact_distances(table: Table) -> None:
    ours = table.ours()
    for query in table.queries(5):
        table.compare(ours, query, 10, 2, refine_factor=3)


def test_partitions_that_are_reached_late_are_scored_without_rounding(tmp_path: Path) -> None:
    # Automatic probing takes few of the partitions, which hold too few rows.
    vectors = draw(4_000, 24)
    for num_bits in (1, 4):
        path = tmp_path / f"{num_bits}.lance"
        table = build(path, "l2", num_bits, vectors=vectors, num_partitions=64)
        ours = table.ours()
        for query in table.queries(2):
            for mode in MODES:
                table.compare(ours, query, 2_000, None, mode=mode)
                for share in (20, 200):
                    table.compare(ours, query, 40, None, mode=mode, condition=f"u < {share}")


def test_deleted_rows_are_never_found_and_take_no_place(tmp_path: Path) -> None:
    for num_bits in (1, 5):
        table = build(tmp_path / f"{num_bits}.lance", "l2", num_bits)
        table.theirs.delete("id % 3 = 0")
        compare_all(table)


def test_rows_that_a_deferred_compaction_dropped_leave_their_blocks(tmp_path: Path) -> None:
    # Which rows stand behind the last full block, and so are not rounded, changes.
    for num_bits in (1, 5):
        for metric in ("l2", "dot"):
            table = build(tmp_path / f"{metric}{num_bits}.lance", metric, num_bits)
            table.theirs.delete("id % 9 = 4")
            table.theirs.optimize.compact_files(
                target_rows_per_fragment=10_000,
                defer_index_remap=True,
                materialize_deletions_threshold=0,
            )
            compare_all(table)


def test_two_segments_are_searched_one_after_the_other(tmp_path: Path) -> None:
    for num_bits in (1, 5):
        table = build(tmp_path / f"{num_bits}.lance", "cosine", num_bits)
        write_rows(table.path, draw(300, 24, seed=8), first=NUM_ROWS)
        table.theirs.optimize.optimize_indices(num_indices_to_merge=0)
        write_rows(table.path, draw(100, 24, seed=9), first=NUM_ROWS + 300)
        compare_all(table, SEARCHES[1:3], fast_search=True)
        compare_all(table, SEARCHES[1:3])


def test_an_empty_partition_is_passed_over(tmp_path: Path) -> None:
    centroids = draw(3, 24, seed=3)
    centroids[1] = 1_000
    column = pa.FixedSizeListArray.from_arrays(pa.array(centroids.ravel()), 24)
    for num_bits in (1, 4):
        path = tmp_path / f"{num_bits}.lance"
        compare_all(build(path, "l2", num_bits, ivf_centroids=column))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float16, 1e-2), (np.float64, 1e-4)], ids=["float16", "float64"]
)
def test_other_float_types_are_computed_in_float32(
    tmp_path: Path, metric: str, dtype: type[np.floating], tolerance: float
) -> None:
    vectors = draw(NUM_ROWS, 24).astype(dtype)
    table = build(tmp_path / "t.lance", metric, 5, vectors=vectors)
    ours = table.ours()
    for query in table.queries(4):
        for k, nprobes in ((7, 2), (NUM_ROWS, 3)):
            table.compare(ours, query, k, nprobes, tolerance=tolerance)


@pytest.mark.parametrize("metric", ["l2", "cosine"])
@pytest.mark.parametrize("release", ["1.0.4", "10.0.0"])
def test_codes_of_older_releases_find_what_pylance_finds(
    old_dataset: Callable[[str, str], Path], release: str, metric: str
) -> None:
    # Of 1.0.4 for the residual of the query, turned by a matrix; all with rows not indexed.
    root = old_dataset(release, f"ivf_rq_{metric}")
    theirs, ours = lance.dataset(str(root)), lance_core.open_dataset(str(root))
    stored = theirs.to_table(columns=["vec"])["vec"].combine_chunks().flatten().to_numpy()
    vectors = stored.reshape(-1, 24)
    generator = np.random.default_rng(3)
    for query in vectors[::60] + 0.2 * generator.standard_normal((len(vectors[::60]), 24)):
        for mode in MODES:
            for k, nprobes in ((1, 1), (10, 2), (600, 4)):
                named: Any = {"k": k, "nprobes": nprobes, "approx_mode": mode}
                found = ours.search(query, column="vec", columns=["id"], fast_search=True, **named)
                expected = theirs.to_table(
                    nearest={"column": "vec", "q": query.astype(np.float32), **named},
                    columns=["id", "_distance"],
                    fast_search=True,
                )
                scale = scale_of(expected["_distance"].to_numpy(), query, metric)
                assert_same_neighbours(found, expected, scale=scale, tolerance=TOLERANCE)


def rewritten(
    table: Table,
    parameters_of: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    matrix: NDArray[np.float32] | None = None,
    without: Sequence[str] = (),
) -> None:
    """Replace the index by a copy with other parameters, another buffer, fewer columns."""
    snapshot = opened(table.path)
    (entry,) = snapshot.manifest.index_section.indices
    (folder,) = (table.path / "_indices").iterdir()
    name = uuid.UUID(int=1)
    target = table.path / "_indices" / str(name)
    shutil.copytree(folder, target)
    (target / "auxiliary.idx").unlink()
    reader = LanceFileReader.open_path(folder / "auxiliary.idx")
    metadata = dict(reader.schema.metadata)
    (text,) = json.loads(metadata["storage_metadata"])
    metadata["storage_metadata"] = json.dumps([json.dumps(parameters_of(json.loads(text)))])
    fields = tuple(field for field in reader.schema.fields if field.name not in without)
    schema = replace(reader.schema, fields=fields, metadata=metadata)
    with LanceFileWriter(
        MappedStore(target), "auxiliary.idx", schema, version=reader.version
    ) as writer:
        writer.add_global_buffer(bytes(reader.global_buffer(1)))
        if matrix is not None:
            writer.add_global_buffer(tensor(matrix))
        writer.write_batch(reader.read_all(schema.names))
        writer.finish()
    copy = table_pb2.IndexMetadata.FromString(entry.SerializeToString())
    copy.uuid.uuid = name.bytes
    for file in copy.files:
        file.size_bytes = (target / file.path).stat().st_size
    apply(snapshot, CreateIndex(new_indices=(copy,), removed_indices=(entry,)))
    assert (target / "auxiliary.idx").stat().st_size > 0


def tensor(matrix: NDArray[np.float32]) -> bytes:
    message = index_pb2.Tensor(
        data_type=index_pb2.Tensor.FLOAT32, shape=matrix.shape, data=matrix.tobytes()
    )
    return message.SerializeToString()


def stored_parameters(table: Table) -> dict[str, Any]:
    (folder,) = (table.path / "_indices").iterdir()
    store = RangeScheduler(MappedStore(folder))
    reader = LanceFileReader.open(store, "auxiliary.idx")
    (text,) = json.loads(reader.schema.metadata["storage_metadata"])
    parameters: dict[str, Any] = json.loads(text)
    return parameters


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("num_bits", [1, 4])
def test_a_matrix_rotates_as_the_signs_that_it_stands_for(
    tmp_path: Path, metric: str, num_bits: int
) -> None:
    table = build(tmp_path / "t.lance", metric, num_bits)
    signs = sign_factors(bytes(stored_parameters(table)["fast_rotation_signs"]), 24)
    matrix = np.empty((24, 24), np.float32)
    for i, unit in enumerate(np.eye(24, dtype=np.float32)):
        column = np.empty(24, np.float32)
        rotate(unit, signs, matrix[:0], column)
        matrix[:, i] = column
    named = {"rotation_type": "matrix", "rotate_mat_position": 2, "fast_rotation_signs": None}
    rewritten(table, lambda stored: {**stored, **named}, matrix=matrix)
    compare_all(table)


@pytest.mark.parametrize("metric", METRICS)
def test_factors_are_taken_for_the_residual_where_no_estimator_is_named(
    tmp_path: Path, metric: str
) -> None:
    # As in files of 3.0 to 7.1; the distances mean nothing here, but to both libraries the same.
    table = build(tmp_path / "t.lance", metric, 1)
    rewritten(table, lambda stored: {k: v for k, v in stored.items() if k != "query_estimator"})
    compare_all(table)


@pytest.mark.parametrize(
    ("num_bits", "change", "without", "reason"),
    [
        (3, {"rotation_type": "givens"}, (), "rotation givens"),
        (3, {"query_estimator": "layered"}, (), "estimator layered"),
        (3, {"query_estimator": "residual_query"}, (), "releases up to 7.1"),
        (3, {"code_dim": 72}, (), "72 for vectors of 24"),
        (3, {}, ("__blocked_ex_codes",), "__blocked_ex_codes"),
        (5, {}, ("__error_factors",), "__error_factors"),
        (1, {}, ("__scale_factors",), "__scale_factors"),
    ],
)
def test_rows_of_unknown_forms_are_searched_exactly(
    tmp_path: Path, num_bits: int, change: dict[str, Any], without: Sequence[str], reason: str
) -> None:
    table = build(tmp_path / "t.lance", "l2", num_bits)
    rewritten(table, lambda stored: {**stored, **change}, without=without)
    ours = table.ours()
    query = table.queries(1)[0]
    expected = table.theirs.to_table(
        nearest={"column": "v", "q": query, "k": 10, "use_index": False},
        columns=["id", "_distance"],
    )
    found = ours.search(query, 10, columns=["id"], nprobes=1)
    assert_same_neighbours(found, expected, scale=100)
    assert reason in ours.explain(VectorQuery(vectors=query[None]))
