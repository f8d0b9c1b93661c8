"""Cleanup removes what pylance's removes, keeps what names hold, and disturbs no writer."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InvalidRequestError, StoreError, UnsupportedFeatureError
from lance_core.io.mapped_store import MappedStore
from lance_core.io.scheduler import RangeScheduler
from lance_core.operations.cleanup import CleanupReport, clean_up
from lance_core.operations.cleanup_plan import CleanupOptions, FileKind
from lance_core.table.commit import commit
from lance_core.table.manifest_bytes import manifest_to_bytes
from lance_core.table.naming import FIRST_DETACHED
from lance_core.table.snapshot import open_snapshot
from lance_core.table.transaction import Append, Transaction
from tests.committed import append, new_fragment, opened

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

NOW = timedelta(0)
LONG = timedelta(days=3650)
UUID = "11111111-1111-1111-1111-111111111111"

LEFT_DELETIONS = "_deletions/0-1-2.bin"


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, last), pa.int64())})


def cleaned(root: Path, *, dry_run: bool = False, **options: Any) -> CleanupReport:
    snapshot = opened(root)
    store = snapshot.scheduler.store
    return clean_up(snapshot, store, None, CleanupOptions(**options), dry_run=dry_run)


def history(root: Path, num_versions: int = 5) -> None:
    for number in range(num_versions):
        table = rows(10 * number, 10 * number + 10)
        lance.write_dataset(table, str(root), mode="append" if number else "create")


def versions(root: Path) -> list[int]:
    return [each["version"] for each in lance.dataset(str(root)).versions()]


def files_below(root: Path) -> dict[str, int]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.stat().st_size for path in found}


def random_history(root: Path, rng: np.random.Generator) -> None:
    """Versions of many kinds, some of them named, and leftovers."""
    dataset = lance.write_dataset(rows(0, 40), str(root), max_rows_per_file=10)
    for step in range(12):
        dataset = lance.dataset(str(root))
        kind = rng.integers(8)
        if kind <= 1:
            lance.write_dataset(rows(50 * step, 50 * step + 9), str(root), mode="append")
        elif kind == 2:
            dataset.delete(f"id % 7 = {rng.integers(7)}")
        elif kind == 3:
            lance.write_dataset(rows(0, 25), str(root), mode="overwrite", max_rows_per_file=10)
        elif kind == 4:
            dataset.create_scalar_index("id", "BTREE", replace=True)
        elif kind == 5:
            dataset.optimize.compact_files(defer_index_remap=bool(rng.integers(2)))
        elif kind == 6:
            dataset.tags.create(f"tag-{step}", int(rng.choice(versions(root))))
        else:
            dataset.create_branch(f"branch-{step}", int(rng.choice(versions(root))))
    for name in ("data/left.lance", LEFT_DELETIONS, f"_indices/{UUID}/a/b.idx"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left over")
        if rng.random() < 0.5:
            os.utime(path, (1e9, 1e9))


def transactions_of_branch_points(root: Path) -> set[str]:
    branches = lance.dataset(str(root)).branches.list().values()
    points = [opened(root, each["parent_version"]) for each in branches]
    return {f"_transactions/{each.manifest.message.transaction_file}" for each in points}


@pytest.mark.parametrize("seed", range(8))
def test_what_is_left_is_what_pylance_leaves(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    random_history(theirs, rng)
    # pylance looks into branches, which name the place that they were made at
    shutil.copytree(theirs, ours)
    unverified, retain = bool(rng.integers(2)), [None, 1, 3][rng.integers(3)]
    age = NOW if retain is None or rng.random() < 0.5 else None
    dry = cleaned(
        ours,
        dry_run=True,
        older_than=age,
        retain_versions=retain,
        delete_unverified=unverified,
        error_if_tagged=False,
    )
    before = files_below(ours)
    report = cleaned(
        ours,
        older_than=age,
        retain_versions=retain,
        delete_unverified=unverified,
        error_if_tagged=False,
    )
    assert report == dry
    stats = lance.dataset(str(theirs)).cleanup_old_versions(
        age,
        retain,
        delete_unverified=unverified,
        error_if_tagged_old_versions=False,
    )
    left, expected = files_below(ours), files_below(theirs)
    # pylance takes the transaction files of versions that branches keep; ours stay complete
    assert {path for path in left if path not in expected} <= transactions_of_branch_points(ours)
    assert expected.keys() <= left.keys() | {LEFT_DELETIONS}  # which pylance does not always find
    assert before.keys() - files_below(ours).keys() == {file.path for file in report.files}
    assert report.num_bytes == sum(before[file.path] for file in report.files)
    assert len(report.versions) == stats.old_versions == report.num_files(FileKind.MANIFEST)
    assert report.num_files(FileKind.DATA) == stats.data_files_removed
    assert report.num_files(FileKind.INDEX) == stats.index_files_removed
    for version in versions(ours):
        lance.dataset(str(ours), version=version).to_table()


def test_nothing_is_old_by_default(tmp_path: Path) -> None:
    history(tmp_path)
    assert cleaned(tmp_path) == CleanupReport((), ())
    assert versions(tmp_path) == [1, 2, 3, 4, 5]


def test_limits_given_together_have_to_agree(tmp_path: Path) -> None:
    history(tmp_path)
    assert cleaned(tmp_path, older_than=LONG, retain_versions=2).versions == ()
    assert cleaned(tmp_path, versions=[1, 4], retain_versions=2, dry_run=True).versions == (1,)
    assert cleaned(tmp_path, older_than=NOW, retain_versions=2).versions == (1, 2, 3)
    assert versions(tmp_path) == [4, 5]
    with pytest.raises(InvalidRequestError, match="version 2"):
        cleaned(tmp_path, versions=[2])
    assert cleaned(tmp_path, older_than=timedelta.max).versions == ()
    for wrong in (
        {"retain_versions": 0},
        {"retain_versions": "two"},
        {"older_than": 14},
        {"versions": "1"},
        {"versions": 1},
    ):
        with pytest.raises(InvalidRequestError, match=next(iter(wrong))):
            cleaned(tmp_path, **wrong)


def test_the_newest_version_and_the_one_opened_stay(tmp_path: Path) -> None:
    history(tmp_path)
    snapshot = opened(tmp_path, 2)
    store = snapshot.scheduler.store
    clean_up(snapshot, store, None, CleanupOptions(older_than=timedelta(0)))
    assert versions(tmp_path) == [2, 5]
    assert cleaned(tmp_path, versions=[5]).versions == ()


def test_tagged_versions_are_an_error_or_stay(tmp_path: Path) -> None:
    history(tmp_path)
    lance.dataset(str(tmp_path)).tags.create("keep", 2)
    with pytest.raises(InvalidRequestError, match="keep"):
        cleaned(tmp_path, older_than=NOW)
    assert versions(tmp_path) == [1, 2, 3, 4, 5]
    assert cleaned(tmp_path, older_than=NOW, error_if_tagged=False).versions == (1, 3, 4)
    assert lance.dataset(str(tmp_path), version="keep").count_rows() == 20


def test_a_branch_is_cleaned_up_by_itself(tmp_path: Path) -> None:
    history(tmp_path)
    main = lance.dataset(str(tmp_path))
    main.create_branch("side", 3)
    folder = tmp_path / "tree" / "side"
    for first in (100, 110, 120):
        lance.write_dataset(rows(first, first + 10), str(folder), mode="append")
    main.tags.create("of-side", ("side", 4))
    before = files_below(tmp_path)
    snapshot = opened(folder)
    store = MappedStore(str(tmp_path))
    options = CleanupOptions(older_than=NOW, error_if_tagged=False)
    assert clean_up(snapshot, store, "side", options).versions == (3, 5)
    gone = before.keys() - files_below(tmp_path).keys()
    assert all(path.startswith("tree/side/") for path in gone)
    side = lance.dataset(str(tmp_path)).checkout_version(("side", None))
    assert side.count_rows() == 60
    assert cleaned(tmp_path, older_than=NOW).versions == (1, 2, 4)
    assert lance.dataset(str(tmp_path)).checkout_version(("side", None)).count_rows() == 60


def test_detached_versions_keep_their_files(tmp_path: Path) -> None:
    history(tmp_path, 2)
    fragment = lance.fragment.LanceFragment.create(str(tmp_path), rows(0, 5))
    detached = lance.LanceDataset.commit(
        str(tmp_path), lance.LanceOperation.Append([fragment]), read_version=2, detached=True
    )
    assert detached.version >= FIRST_DETACHED
    assert cleaned(tmp_path, older_than=NOW, delete_unverified=True).versions == (1,)
    assert lance.dataset(str(tmp_path), version=detached.version).to_table().num_rows == 25


def test_unknown_names_and_other_folders_are_left_alone(tmp_path: Path) -> None:
    history(tmp_path, 1)
    unknown = [
        "foo.txt",
        "data/foo.txt",
        "x.lance",
        "_deletions/readme",
        "_indices/not-a-uuid/a.idx",
        "_versions/1.manifest-" + UUID,
        "_refs/other.json",
        "tree/x/data/y.lance",
    ]
    for name in unknown:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    before = files_below(tmp_path)
    cleaned(tmp_path, older_than=NOW, delete_unverified=True)
    assert files_below(tmp_path) == before


def test_files_of_writers_under_way_are_left_alone(tmp_path: Path) -> None:
    history(tmp_path, 3)
    snapshot = opened(tmp_path)
    fragment = new_fragment(snapshot.scheduler.store, rows(90, 95), snapshot.schema)
    cleaned(tmp_path, older_than=NOW)
    commit(snapshot.scheduler, Transaction(3, Append((fragment,))))
    assert lance.dataset(str(tmp_path)).to_table().num_rows == 35


def test_what_killed_writers_left_goes_when_it_is_old(tmp_path: Path) -> None:
    history(tmp_path, 2)
    for name in ("data/.lance-serve-1", "_deletions/x/.lance-serve-2", ".lance-serve-3"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"half a file")
    assert cleaned(tmp_path).files == ()
    os.utime(tmp_path / "data" / ".lance-serve-1", (1e9, 1e9))
    (removed,) = cleaned(tmp_path).files
    assert (removed.path, removed.kind) == ("data/.lance-serve-1", FileKind.TEMPORARY)
    (removed,) = cleaned(tmp_path, delete_unverified=True).files
    assert removed.path == "_deletions/x/.lance-serve-2"
    assert (tmp_path / ".lance-serve-3").exists()  # in no folder of the dataset


class CommittingStore(MappedStore):
    """Somebody brings the oldest version back as soon as the first manifest is gone."""

    def delete(self, path: str) -> None:
        super().delete(path)
        if path.startswith("_versions/") and self.version is not None:
            version, self.version = self.version, None
            append(opened(self.uri, version), rows(70, 75))

    version: int | None = None


def test_what_is_committed_meanwhile_keeps_its_files(tmp_path: Path) -> None:
    history(tmp_path, 4)
    store = CommittingStore(str(tmp_path))
    store.version = 4
    snapshot = open_snapshot(RangeScheduler(store))
    report = clean_up(snapshot, store, None, CleanupOptions(older_than=NOW))
    assert report.versions == (1, 2, 3)
    assert versions(tmp_path) == [4, 5]
    assert lance.dataset(str(tmp_path)).to_table().num_rows == 45


class FailingStore(MappedStore):
    """Breaks down after some deletions."""

    left = 0

    def delete(self, path: str) -> None:
        if self.left == 0:
            raise StoreError("out of order")
        self.left -= 1
        super().delete(path)


@pytest.mark.parametrize("num_deletions", range(8))
def test_versions_are_complete_wherever_it_stops(tmp_path: Path, num_deletions: int) -> None:
    history(tmp_path, 2)
    lance.dataset(str(tmp_path)).delete("id = 3")
    lance.write_dataset(rows(0, 5), str(tmp_path), mode="overwrite")
    store = FailingStore(str(tmp_path))
    store.left = num_deletions
    snapshot = open_snapshot(RangeScheduler(store))
    with pytest.raises(StoreError):
        clean_up(snapshot, store, None, CleanupOptions(older_than=NOW))
    for version in versions(tmp_path):
        dataset = lance_core.open_dataset(tmp_path, version)
        assert dataset.scan().read_all().num_rows == dataset.count_rows()
    # what is left over counts as left by a failed writer
    cleaned(tmp_path, older_than=NOW, delete_unverified=True)
    assert len(list((tmp_path / "data").iterdir())) == 1
    assert len(list((tmp_path / "_transactions").iterdir())) == 1


def test_a_dataset_with_unknown_features_is_left_alone(tmp_path: Path) -> None:
    history(tmp_path, 3)
    snapshot = opened(tmp_path)
    message = snapshot.manifest.message
    message.reader_feature_flags |= 1 << 40
    message.writer_feature_flags |= 1 << 40
    data = manifest_to_bytes(message, [], b"")
    (tmp_path / snapshot.manifest.path).write_bytes(data)
    before = files_below(tmp_path)
    store = MappedStore(str(tmp_path))
    old = open_snapshot(RangeScheduler(store), 1)
    with pytest.raises(UnsupportedFeatureError, match="bit 40"):
        clean_up(old, store, None, CleanupOptions(older_than=NOW))
    assert files_below(tmp_path) == before
