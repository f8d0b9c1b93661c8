"""Deferred compactions and trims of ours, in pylance's hands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.proto.frag_reuse_pb2 import FragmentReuseIndexDetails
from lance_core.table import reuse_entry
from lance_core.table.commit import commit
from lance_core.table.deletion import read_deleted_offsets
from lance_core.table.index_metadata import REUSE_INDEX_NAME
from lance_core.table.reuse_of_version import group_of, reuse_of, trim_of, with_compaction
from lance_core.table.reuse_trim import growth
from lance_core.table.transaction import ReserveFragments, Rewrite, RewriteGroup, Transaction
from tests.committed import append, apply, delete, new_fragment, opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lance_core.io.scheduler import RangeScheduler
    from lance_core.table.manifest import Manifest
    from lance_core.table.snapshot import Snapshot

pytestmark = pytest.mark.interop

DIMENSION = 4
VECTORS = np.random.default_rng(2).standard_normal((2000, DIMENSION)).astype(np.float32)


def rows(ids: Sequence[int]) -> pa.Table:
    values = pa.array(VECTORS[list(ids)].ravel())
    vectors = pa.FixedSizeListArray.from_arrays(values, DIMENSION)
    return pa.table({"id": pa.array(list(ids), pa.int64()), "vec": vectors})


def indexed(root: Path, num_rows: int = 800) -> Snapshot:
    dataset = lance.write_dataset(rows(range(num_rows)), str(root), max_rows_per_file=100)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2)
    return opened(root)


def live_rows(root: Path | str, version: int, fragment_id: int) -> pa.Table:
    fragment = lance.dataset(str(root), version=version).get_fragment(fragment_id)
    assert fragment is not None
    return fragment.to_table()


def compact(snapshot: Snapshot, *groups: Sequence[int], race: bool = False) -> Snapshot:
    """Compact groups of fragments in deferred mode, each into two fragments."""
    scheduler, read_version = snapshot.scheduler, snapshot.version
    reserved = apply(snapshot, ReserveFragments(2 * len(groups)))
    first = reserved.manifest.message.max_fragment_id + 1 - 2 * len(groups)
    messages = {each.id: each for each in snapshot.manifest.message.fragments}
    made, described = [], []
    for place, fragment_ids in enumerate(groups):
        deleted = {
            int(f.id): read_deleted_offsets(scheduler, f)
            for f in snapshot.fragments
            if f.id in fragment_ids
        }
        uri = scheduler.store.uri
        live = pa.concat_tables([live_rows(uri, read_version, f) for f in fragment_ids])
        cut = live.num_rows // 3
        new = [
            new_fragment(scheduler.store, part, snapshot.schema)
            for part in (live.slice(0, cut), live.slice(cut))
        ]
        for number, fragment in enumerate(new):
            fragment.id = first + 2 * place + number
        made.append(RewriteGroup(tuple(messages[f] for f in fragment_ids), tuple(new)))
        described.append(group_of(made[-1], deleted))
    if race:
        append(reserved, rows(range(1990, 2000)))
    return commit(
        scheduler,
        Transaction(read_version, Rewrite(tuple(made))),
        reuse=partial(with_compaction, scheduler, described),
    )


def check(root: Path, ids: Sequence[int]) -> None:
    """Check every key by pylance's B-tree, and vectors by both."""
    dataset = lance.dataset(str(root))
    assert sorted(dataset.to_table(columns=["id"])["id"].to_pylist()) == sorted(ids)
    assert "ScalarIndexQuery" in dataset.scanner(filter="id = 7").explain_plan()
    for key in [*ids[::7], 3, 11]:
        found = dataset.to_table(columns=["id"], filter=f"id = {key}")["id"].to_pylist()
        assert found == ([key] if key in set(ids) else [])
    ours = lance_core.open_dataset(str(root))
    for key in ids[::53]:
        nearest = {"column": "vec", "q": VECTORS[key], "k": 1, "nprobes": 2}
        assert dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist() == [key]
        assert ours.search(VECTORS[key], 1, columns=["id"], nprobes=2)["id"].to_pylist() == [key]
    everything = ours.search(VECTORS[0], 5000, columns=["id"], nprobes=2)["id"].to_pylist()
    assert sorted(everything) == sorted(ids)


def test_pylance_searches_what_we_compacted(tmp_path: Path) -> None:
    snapshot = delete(indexed(tmp_path), {0: [3], 1: range(50), 5: [99]})
    ids = [i for i in range(800) if i not in {3, 599} and not 100 <= i < 150]
    snapshot = compact(snapshot, [0, 1], [5, 4])
    check(tmp_path, ids)
    assert {8, 9, 10, 11} < set(snapshot.fragments_by_id)
    (entry,) = [e for e in snapshot.manifest.indices if e.name == REUSE_INDEX_NAME]
    assert entry.dataset_version == snapshot.version - 1
    # once more over what came out, with deletions between
    snapshot = delete(snapshot, {9: [0], 2: [11]})
    dead = live_rows(tmp_path, snapshot.version - 1, 9)["id"][0].as_py()
    ids = [i for i in ids if i not in {dead, 211}]
    compact(snapshot, [9, 2, 8])
    check(tmp_path, ids)
    lance.dataset(str(tmp_path)).update_config({"a": "b"})
    check(tmp_path, ids)
    lance.dataset(str(tmp_path)).optimize.compact_files(
        target_rows_per_fragment=5000, defer_index_remap=True
    )
    check(tmp_path, ids)
    assert len(reuse_of(*ground(tmp_path)).versions) == 3


def ground(root: Path) -> tuple[RangeScheduler, Manifest]:
    snapshot = opened(root)
    return snapshot.scheduler, snapshot.manifest


def test_an_append_between_reservation_and_rewrite_moves_the_entry(tmp_path: Path) -> None:
    snapshot = compact(indexed(tmp_path, 300), [0, 2], race=True)
    (version,) = reuse_of(snapshot.scheduler, snapshot.manifest).versions
    assert version.dataset_version == snapshot.version - 1
    check(tmp_path, [*range(300), *range(1990, 2000)])


def test_pylance_reads_a_history_that_we_put_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = indexed(tmp_path, 400)
    monkeypatch.setattr(reuse_entry, "_LARGEST_INLINE", 10)
    snapshot = compact(compact(snapshot, [0, 1]), [4, 2])
    (entry,) = [e for e in snapshot.manifest.indices if e.name == REUSE_INDEX_NAME]
    assert FragmentReuseIndexDetails.FromString(entry.details).HasField("external")
    check(tmp_path, range(400))
    lance.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)
    check(tmp_path, range(400))


def test_a_history_is_trimmed_when_the_indices_have_followed(tmp_path: Path) -> None:
    snapshot = compact(indexed(tmp_path, 400), [0, 1])
    assert trim_of(snapshot.scheduler, snapshot.manifest) is None
    snapshot = compact(snapshot, [3, 2])
    dataset = lance.dataset(str(tmp_path))
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2, replace=True)
    snapshot = opened(tmp_path)
    history = reuse_of(snapshot.scheduler, snapshot.manifest)
    assert growth(history, snapshot.indices).num_removable == 0  # the B-tree has not followed
    assert trim_of(snapshot.scheduler, snapshot.manifest) is None
    dataset = lance.dataset(str(tmp_path))
    dataset.create_scalar_index("id", "BTREE", replace=True)
    snapshot = opened(tmp_path)
    assert growth(history, snapshot.indices).num_removable == 2
    trim = trim_of(snapshot.scheduler, snapshot.manifest)
    assert trim is not None
    snapshot = apply(snapshot, trim)
    assert REUSE_INDEX_NAME not in {entry.name for entry in snapshot.indices}
    check(tmp_path, range(400))


def test_a_trim_keeps_what_came_after_the_indices(tmp_path: Path) -> None:
    snapshot = compact(indexed(tmp_path, 400), [0, 1])
    dataset = lance.dataset(str(tmp_path))
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2, replace=True)
    dataset.create_scalar_index("id", "BTREE", replace=True)
    snapshot = compact(opened(tmp_path), [4, 5, 3])
    trim = trim_of(snapshot.scheduler, snapshot.manifest)
    assert trim is not None
    snapshot = apply(snapshot, trim)
    (left,) = reuse_of(snapshot.scheduler, snapshot.manifest).versions
    assert sorted(left.old_ids) == [3, 4, 5]
    check(tmp_path, range(400))
