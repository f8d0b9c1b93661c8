"""Compaction, cleanup and verification as methods of a dataset, on branches too."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.operations.compact_trim import reuse_growth

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NOW = timedelta(0)


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, last), pa.int64())})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    dataset = lance.write_dataset(rows(0, 60), str(tmp_path), max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 7")
    return tmp_path


def test_a_dataset_is_compacted_trimmed_cleaned_and_sound(root: Path) -> None:
    dataset = lance_core.open_dataset(root)
    compacted = dataset.compact(indices="defer", target_rows_per_fragment=20)
    assert compacted.version > dataset.version == 3
    assert compacted.scan().read_all() == dataset.scan().read_all()
    assert reuse_growth(compacted.snapshot).num_versions == 1
    lance.dataset(str(root)).create_scalar_index("id", "BTREE", replace=True)
    trimmed = compacted.checkout().trim_reuse_index()
    assert reuse_growth(trimmed.snapshot).num_versions == 0
    assert list(trimmed.verify()) == []
    planned = trimmed.cleanup(older_than=NOW, dry_run=True)
    assert trimmed.cleanup(older_than=NOW) == planned
    assert [each.version for each in trimmed.versions()] == [trimmed.version]
    assert list(trimmed.verify()) == []
    assert lance.dataset(str(root)).to_table(filter="id = 33")["id"].to_pylist() == [33]


def test_the_configuration_is_what_holds_unless_something_is_asked_for(root: Path) -> None:
    lance.dataset(str(root)).update_config(
        {
            "lance.compaction.target_rows_per_fragment": "30",
            "lance.compaction.materialize_deletions": "false",
            "lance.compaction.defer_index_remap": "true",
        }
    )
    dataset = lance_core.open_dataset(root)
    sizes = [f.physical_rows for f in dataset.compact().snapshot.fragments]
    assert sizes == [30, 29]
    whole = dataset.checkout().compact(indices="drop_coverage", target_rows_per_fragment=100)
    assert [fragment.physical_rows for fragment in whole.snapshot.fragments] == [59]


def test_a_branch_is_maintained_where_it_lies(root: Path) -> None:
    lance.dataset(str(root)).create_branch("side", 3)
    lance.write_dataset(rows(100, 110), str(root / "tree" / "side"), mode="append")
    side = lance_core.open_dataset(root, branch="side")
    compacted = side.compact(indices="drop_coverage")
    assert compacted.count_rows() == 69
    assert list(compacted.verify()) == []
    assert compacted.cleanup(older_than=NOW).versions == (3, 4, 5)
    assert list(lance_core.open_dataset(root).verify()) == []
    assert lance_core.open_dataset(root).cleanup(older_than=NOW).versions == (1, 2)
    again = lance.dataset(str(root)).checkout_version(("side", None))
    assert again.to_table().num_rows == 69


@pytest.mark.parametrize("release", ["0.20.0", "1.0.4", "10.0.0"])
@pytest.mark.parametrize("name", ["plain", "evolve", "ivf_pq_l2"])
@pytest.mark.parametrize("indices", ["defer", "drop_coverage"])
def test_old_datasets_are_maintained(
    old_dataset: Any, tmp_path: Path, release: str, name: str, indices: Any
) -> None:
    root = tmp_path / "t.lance"
    shutil.copytree(old_dataset(release, name), root)
    before = sorted(map(repr, lance.dataset(str(root)).to_table().to_pylist()))
    dataset = lance_core.open_dataset(root)
    compacted = dataset.compact(indices=indices, deletions_threshold=0.0)
    assert compacted.version > dataset.version
    compacted.cleanup(older_than=NOW)
    assert list(compacted.verify()) == []
    after = lance.dataset(str(root))
    assert sorted(map(repr, after.to_table().to_pylist())) == before
    after.optimize.compact_files(defer_index_remap=indices == "defer")
    assert lance.dataset(str(root)).count_rows() == len(before)


@pytest.mark.parametrize("kind", ["clone", "branch"])
def test_a_reuse_history_goes_on_in_clones_and_branches(
    root: Path, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    version = lance_core.open_dataset(root).compact(indices="defer").version
    source = lance.dataset(str(root))
    if kind == "clone":
        place = tmp_path_factory.mktemp("clones") / "c.lance"
        source.shallow_clone(str(place), version)
        dataset = lance_core.open_dataset(place)
    else:
        source.create_branch("side", version)
        place = root / "tree" / "side"
        dataset = lance_core.open_dataset(root, branch="side")
    treatments: list[tuple[Any, int]] = [("defer", 20), ("drop_coverage", 30)]
    for treatment, gone in treatments:
        lance.dataset(str(place)).delete(f"id = {gone}")
        dataset = dataset.checkout().compact(indices=treatment, deletions_threshold=0.0)
        for key in (gone, gone + 1):
            found = lance.dataset(str(place)).to_table(filter=f"id = {key}")["id"].to_pylist()
            assert found == ([key] if key != gone else [])
        assert list(dataset.verify()) == []
    dataset.cleanup(older_than=NOW)
    assert list(dataset.checkout().verify()) == []
    assert lance.dataset(str(root)).count_rows() == 59
    assert list(lance_core.open_dataset(root).verify()) == []


def test_an_unknown_treatment_is_refused(root: Path) -> None:
    unknown: Any = "later"
    with pytest.raises(InvalidRequestError, match="defer, drop_coverage, remap"):
        lance_core.open_dataset(root).compact(indices=unknown)
