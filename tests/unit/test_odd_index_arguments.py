"""What is no argument of work on indices is refused by name, and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.operations.new_index import NewIndex
from lance_core.proto import table_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DIMENSION = 8
VECTORS = np.random.default_rng(3).standard_normal((40, DIMENSION), dtype=np.float32)
TABLE = pa.table(
    {
        "id": range(40),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), DIMENSION),
    }
)
SCALAR, VECTOR = NewIndex("id_idx", "id", "BTREE"), NewIndex("v_idx", "v", "IVF_FLAT")

Odd = tuple[object, ...]
Dataset = Any

MEMORY: Odd = ("1GB", None, 1e6, 1 << 70, 0, -1, True, [1])
FLAGS: Odd = ("no", 1, None, [])
PROGRESS: Odd = (5, "bar", None)
NAMES: Odd = (
    "id_idx",
    [5],
    5,
    [],
    [None],
    {"id_idx": 1},
    ["id_idx", "id_idx"],
    b"id_idx",
    ["\ud800"],
)
NAME: Odd = (5, None, ["id_idx"], b"id_idx", "\ud800")
NEW_NAMES: Odd = (
    5,
    ["n"],
    b"n",
    "\ud800",
    "",
    " ",
    "\n",
    "\u3000",
    "a\nb",
    "\x00",
    "a\x7f",
    "a\u2028b",
)
COLUMN: Odd = (None, ["v"], 5, b"v", "\ud800", "", "_rowid", "v.", "`v")
INDEX_TYPE: Odd = (None, 5, ["BTREE"], b"BTREE", "", "TREE")
INDEX: Odd = (None, "v_idx", ("v_idx", "v", "IVF_FLAT"), {"name": "v_idx"})
FRAGMENTS: Odd = (5, "0", [], ["0"], [None], [1.0], [True], [-1], [1 << 40], [[0]], [99], b"0")
SEGMENTS: Odd = (None, 5, "s", [], [None], [b""], table_pb2.IndexMetadata(), ["id_idx"])
MODEL: Odd = ("model", 5, VECTORS)
PARAMETERS: Odd = ("num_partitions", [1], 5, None, {5: 1}, {None: 1}, {"\ud800": 1})

ARGUMENTS: Mapping[str, tuple[Odd, Callable[[Dataset, Any], object]]] = {
    "create_index column": (COLUMN, lambda d, x: d.create_index(x, "BTREE")),
    "create_index column beside a name": (COLUMN, lambda d, x: d.create_index(x, "BTREE", "n")),
    "create_index index_type": (INDEX_TYPE, lambda d, x: d.create_index("id", x)),
    "create_index name": (NEW_NAMES, lambda d, x: d.create_index("id", "BTREE", x)),
    "create_index replace": (FLAGS, lambda d, x: d.create_index("id", "BTREE", replace=x)),
    "create_index memory_bytes": (
        MEMORY,
        lambda d, x: d.create_index("v", "IVF_SQ", memory_bytes=x),
    ),
    "create_index progress": (PROGRESS, lambda d, x: d.create_index("id", "BTREE", progress=x)),
    "optimize_indices names": (NAMES, lambda d, x: d.optimize_indices(x)),
    "optimize_indices num_segments_to_merge": (
        ("1", None, 1.0, -1, True, 1 << 70),
        lambda d, x: d.optimize_indices(num_segments_to_merge=x),
    ),
    "optimize_indices retrain": (FLAGS, lambda d, x: d.optimize_indices(retrain=x)),
    "optimize_indices memory_bytes": (MEMORY, lambda d, x: d.optimize_indices(memory_bytes=x)),
    "optimize_indices progress": (PROGRESS, lambda d, x: d.optimize_indices(progress=x)),
    "remap_indices names": (NAMES, lambda d, x: d.remap_indices(x)),
    "remap_indices progress": (PROGRESS, lambda d, x: d.remap_indices(progress=x)),
    "drop_index name": (NAME, lambda d, x: d.drop_index(x)),
    "index_statistics name": (NAME, lambda d, x: d.index_statistics(x)),
    "segments_of name": (NAME, lambda d, x: d.segments_of(x)),
    "train_model index": (INDEX, lambda d, x: d.train_model(x)),
    "train_model fragment_ids": (FRAGMENTS, lambda d, x: d.train_model(VECTOR, x)),
    "train_model memory_bytes": (MEMORY, lambda d, x: d.train_model(VECTOR, memory_bytes=x)),
    "train_model progress": (PROGRESS, lambda d, x: d.train_model(VECTOR, progress=x)),
    "build_segment index": (INDEX, lambda d, x: d.build_segment(x)),
    "build_segment fragment_ids": (FRAGMENTS, lambda d, x: d.build_segment(SCALAR, x)),
    "build_segment model": (MODEL, lambda d, x: d.build_segment(VECTOR, model=x)),
    "build_segment memory_bytes": (MEMORY, lambda d, x: d.build_segment(SCALAR, memory_bytes=x)),
    "build_segment progress": (PROGRESS, lambda d, x: d.build_segment(SCALAR, progress=x)),
    "build_segment name": (NEW_NAMES, lambda d, x: d.build_segment(NewIndex(x, "id", "BTREE"))),
    "merge_segments segments": (SEGMENTS, lambda d, x: d.merge_segments(x)),
    "merge_segments memory_bytes": (
        MEMORY,
        lambda d, x: d.merge_segments(d.segments_of("id_idx"), memory_bytes=x),
    ),
    "commit_segments name": (NAME, lambda d, x: d.commit_segments(x, d.segments_of("id_idx"))),
    "commit_segments segments": (SEGMENTS, lambda d, x: d.commit_segments("id_idx", x)),
    "parameters of an index": (PARAMETERS, lambda _, x: NewIndex("n", "id", "BTREE", x)),
    "a number of an index": (
        ("4", 4.5, 0, -1, 1 << 70, True, [4]),
        lambda d, x: d.create_index("v", "IVF_FLAT", num_partitions=x),
    ),
    "rows of a page": (
        ("4", 4.5, 0, -1, 1 << 70, True, [4]),
        lambda d, x: d.create_index("id", "BTREE", zone_size=x),
    ),
    "a probability": (
        ("4", 4.5, 0, -0.1, float("nan"), True, [4]),
        lambda d, x: d.create_index("id", "BLOOMFILTER", probability=x),
    ),
    "a metric": ((5, "", "l3", ["l2"]), lambda d, x: d.create_index("v", "IVF_FLAT", metric=x)),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    path = tmp_path_factory.mktemp("odd") / "t"
    return lance_core.write_dataset(path, TABLE).create_index("id", "BTREE")


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_what_is_no_argument_of_index_work_is_refused(argument: str, dataset: Dataset) -> None:
    odd, call = ARGUMENTS[argument]
    before = {each.path for each in dataset.snapshot.scheduler.store.list_tree("")}
    for value in odd:
        with pytest.raises(InvalidRequestError) as caught:
            call(dataset, value)
        assert len(str(caught.value)) > 20, value
        assert {each.path for each in dataset.snapshot.scheduler.store.list_tree("")} == before


def test_numbers_and_truth_values_of_numpy_are_as_good_as_plain_ones(tmp_path: Path) -> None:
    dataset = lance_core.write_dataset(tmp_path / "t", TABLE)
    made = dataset.create_index(
        "v",
        "IVF_FLAT",
        replace=np.True_,  # type: ignore[arg-type]  # a bool to whoever reads it
        memory_bytes=np.int64(256 << 20),  # type: ignore[arg-type]  # a number likewise
        num_partitions=np.int32(2),
        target_partition_size=np.uint16(20),
    )
    assert made.index_statistics("v_idx").num_partitions == 2
    assert len(list(made.segments_of("v_idx"))) == 1


def test_names_of_indices_may_come_from_any_iterable(tmp_path: Path) -> None:
    dataset = lance_core.write_dataset(tmp_path / "t", TABLE).create_index("id", "BTREE")
    more = dataset.append(TABLE)
    done = more.optimize_indices(name for name in ["id_idx"])  # type: ignore[arg-type]  # read once
    assert done.index_statistics("id_idx").num_indexed_rows == 80
    assert done.remap_indices(iter(["id_idx"])).version == done.version  # type: ignore[arg-type]  # same


@pytest.mark.parametrize(
    ("index_type", "column", "given"),
    [
        ("BTREE", "id", ["zone_size"]),
        ("ZONEMAP", "id", ["rows_per_zone"]),
        ("BLOOMFILTER", "id", ["number_of_items", "probability"]),
        ("IVF_FLAT", "v", ["metric", "num_partitions", "target_partition_size", "ivf_centroids"]),
        ("IVF_RQ", "v", ["num_bits", "rotation", "rotation_type"]),
    ],
)
def test_none_stands_for_the_usual_value_of_every_parameter(
    index_type: str, column: str, given: list[str], tmp_path: Path
) -> None:
    dataset: Dataset = lance_core.write_dataset(tmp_path / "t", TABLE)
    made = dataset.create_index(column, index_type, None, **dict.fromkeys(given))
    assert made.index_statistics(f"{column}_idx").num_indexed_rows == 40
