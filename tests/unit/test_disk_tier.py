"""The tier of local disk: what it keeps, what it fetches, and whom it believes."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from lance_core.errors import CorruptFileError, InvalidRequestError, ObjectNotFoundError
from lance_core.io.counting_store import CountingStore
from lance_core.io.disk_budget import DiskBudget, bytes_on_disk
from lance_core.io.disk_tier import DiskTier
from lance_core.io.memory_store import MemoryStore
from lance_core.io.metering import metered
from lance_core.io.scheduler import ByteRange, RangeScheduler
from lance_core.table.dataset_stores import KEPT_OBJECTS

AMPLE = 1 << 26
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def store() -> CountingStore:
    inner = MemoryStore()
    inner.put("_versions/1.manifest", b"first manifest")
    inner.put("data/a.lance", CONTENT)
    return CountingStore(inner, coalesce_gap=100)


def tier_at(folder: Path, budget_bytes: int = AMPLE) -> DiskTier:
    return DiskTier(folder, budget_bytes, KEPT_OBJECTS)


def files_in(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*-*") if each.is_file() and each.name[0] != "."]


def test_what_was_read_once_is_not_fetched_again_by_another_process(
    store: CountingStore, tmp_path: Path
) -> None:
    tier_at(tmp_path).over(store).get_range("data/a.lance", 10, 500)
    store.reset()
    again = tier_at(tmp_path).over(store)
    assert bytes(again.get_range("data/a.lance", 10, 500)) == CONTENT[10:500]
    assert bytes(again.get_range("data/a.lance", 60, 61)) == CONTENT[60:61]
    assert store.ranges == []


def test_only_what_is_missing_is_fetched(store: CountingStore, tmp_path: Path) -> None:
    tiered = tier_at(tmp_path).over(store)
    for start, end in [(100, 200), (300, 400)]:
        tiered.get_range("data/a.lance", start, end)
    store.reset()
    assert bytes(tiered.get_range("data/a.lance", 50, 450)) == CONTENT[50:450]
    assert store.ranges == [("data/a.lance", 50, 450)]
    store.reset()
    assert bytes(tiered.get_range("data/a.lance", 400, 600)) == CONTENT[400:600]
    assert bytes(tiered.get_range("data/a.lance", 20, 60)) == CONTENT[20:60]
    assert store.ranges == [("data/a.lance", 450, 600), ("data/a.lance", 20, 50)]


def test_a_range_at_hand_does_not_draw_bytes_beside_it_into_a_request(
    store: CountingStore, tmp_path: Path
) -> None:
    scheduler = RangeScheduler(tier_at(tmp_path).over(store))
    scheduler.read("data/a.lance", [(0, 10)])
    store.reset()
    wanted = [ByteRange("data/a.lance", 0, 10), ByteRange("data/a.lance", 60, 70)]
    with metered() as meter:
        views = scheduler.read_many([*wanted, ByteRange("data/a.lance", 5, 5)])
    assert [bytes(view) for view in views] == [CONTENT[0:10], CONTENT[60:70], b""]
    assert store.ranges == [("data/a.lance", 60, 70)]
    assert (meter.bytes_read, meter.store_requests) == (10, 1)


def test_what_may_change_is_always_read_from_the_store(
    store: CountingStore, tmp_path: Path
) -> None:
    tiered = tier_at(tmp_path).over(store)
    for path in ("_refs/tags/a.json", "_transactions/1.txn", "a", "data"):
        store.put(path, b"old")
        tiered.get_range(path, 0, 3)
        store.put(path, b"new")
        assert bytes(tiered.get_range(path, 0, 3)) == b"new"
    assert files_in(tmp_path) == []


def test_a_manifest_is_known_only_by_a_listing(store: CountingStore, tmp_path: Path) -> None:
    tiered = tier_at(tmp_path).over(store)
    tiered.get_range("_versions/1.manifest", 0, 5)
    tiered.get_range("_versions/1.manifest", 0, 5)
    assert len(store.ranges) == 2
    tiered.list_folder("_versions")
    for _ in range(2):
        assert bytes(tiered.get_range("_versions/1.manifest", 0, 5)) == b"first"
    assert len(store.ranges) == 3
    store.put("_versions/1.manifest", b"other manifest")
    tiered.list_folder("_versions")
    assert bytes(tiered.get_range("_versions/1.manifest", 0, 5)) == b"other"


def test_later_versions_share_what_earlier_ones_read(store: CountingStore, tmp_path: Path) -> None:
    tier_at(tmp_path).over(store).get_range("data/a.lance", 0, 100)
    store.put("_versions/2.manifest", b"second")
    store.delete("_versions/1.manifest")
    store.put("_versions/3.manifest", b"third")
    later = tier_at(tmp_path).over(store)
    later.list_folder("_versions")
    store.reset()
    later.get_range("data/a.lance", 0, 100)
    # Nothing of what was there is left: this could be any dataset.
    assert len(store.ranges) == 1
    store.put("_versions/4.manifest", b"fourth")
    store.reset()
    tier_at(tmp_path).over(store).get_range("data/a.lance", 0, 100)
    assert store.ranges == []


def test_a_dataset_made_anew_at_the_same_place_shares_nothing(
    store: CountingStore, tmp_path: Path
) -> None:
    tier_at(tmp_path).over(store).get_range("data/a.lance", 0, 4)
    store.put("_versions/1.manifest", b"not the same")
    store.put("data/a.lance", b"anew")
    again = tier_at(tmp_path).over(store)
    assert bytes(again.get_range("data/a.lance", 0, 4)) == b"anew"


def test_a_place_without_manifests_is_not_kept(tmp_path: Path) -> None:
    inner = MemoryStore()
    inner.put("data/a.lance", b"0123")
    tiered = tier_at(tmp_path).over(inner)
    assert bytes(tiered.get_range("data/a.lance", 0, 4)) == b"0123"
    assert files_in(tmp_path) == []


def test_stores_with_other_keys_share_nothing(store: CountingStore, tmp_path: Path) -> None:
    tier_at(tmp_path).over(store).get_range("data/a.lance", 0, 100)
    store.key = "another endpoint"
    store.reset()
    tier_at(tmp_path).over(store).get_range("data/a.lance", 0, 100)
    assert len(store.ranges) == 1


@pytest.mark.parametrize("damage", ["cut", "longer", "flipped", "empty", "other header"])
def test_a_damaged_file_is_dropped_and_its_bytes_are_fetched(
    store: CountingStore, tmp_path: Path, damage: str
) -> None:
    tier_at(tmp_path).over(store).get_range("data/a.lance", 0, 100)
    (file,) = files_in(tmp_path)
    whole = file.read_bytes()
    damaged = {
        "cut": whole[:-1],
        "longer": whole + b"x",
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "empty": b"",
        "other header": b"XXXX" + whole[4:],
    }
    file.write_bytes(damaged[damage])
    store.reset()
    tier = tier_at(tmp_path)
    tiered = tier.over(store)
    assert bytes(tiered.get_range("data/a.lance", 20, 40)) == CONTENT[20:40]
    assert store.ranges == [("data/a.lance", 20, 40)]
    assert tier.stats.damaged == 1
    assert not file.exists()


def test_a_file_that_another_process_removed_is_fetched(
    store: CountingStore, tmp_path: Path
) -> None:
    tiered = tier_at(tmp_path).over(store)
    tiered.get_range("data/a.lance", 0, 100)
    for file in files_in(tmp_path):
        file.unlink()
    assert bytes(tiered.get_range("data/a.lance", 0, 100)) == CONTENT[:100]


def test_what_another_process_wrote_meanwhile_is_found(
    store: CountingStore, tmp_path: Path
) -> None:
    one, other = tier_at(tmp_path).over(store), tier_at(tmp_path).over(store)
    one.get_range("data/a.lance", 0, 10)
    other.get_range("data/a.lance", 0, 10)
    other.get_range("data/a.lance", 50, 60)
    store.reset()
    assert one.held_range("data/a.lance", 50, 60) is not None
    assert store.ranges == []


def test_long_ranges_are_cut_into_pieces(tmp_path: Path) -> None:
    content = np.random.default_rng(1).bytes((5 << 20) // 2)
    inner = MemoryStore()
    inner.put("_versions/1.manifest", b"")
    inner.put("_indices/x/auxiliary.idx", content)
    store = CountingStore(inner)
    path = "_indices/x/auxiliary.idx"
    tier_at(tmp_path).over(store).get_range(path, 0, len(content))
    assert len(files_in(tmp_path)) == 3
    store.reset()
    view = tier_at(tmp_path).over(store).get_range(path, 1_000_000, 1_100_000)
    assert bytes(view) == content[1_000_000:1_100_000]
    assert store.ranges == []


def test_the_budget_is_kept_and_the_least_recently_read_leaves(tmp_path: Path) -> None:
    inner = MemoryStore()
    inner.put("_versions/1.manifest", b"")
    inner.put("data/a", bytes(1 << 20))
    store = CountingStore(inner)
    tier = tier_at(tmp_path, 40 * 4096)
    tiered = tier.over(store)
    tiered.get_range("data/a", 0, 4000)
    for number in range(1, 100):
        tiered.get_range("data/a", number * 10_000, number * 10_000 + 4000)
        os.utime(next(iter(tmp_path.rglob("0-4000"))), (2**32, 2**32))  # read just now
        used = sum(bytes_on_disk(file.stat().st_size) for file in files_in(tmp_path))
        assert used == tier.stats.used_bytes <= 40 * 4096
    store.reset()
    tiered.get_range("data/a", 0, 4000)
    tiered.get_range("data/a", 990_000, 994_000)
    assert store.ranges == []
    tiered.get_range("data/a", 10_000, 14_000)
    assert len(store.ranges) == 1


def test_what_is_larger_than_the_budget_is_not_kept(store: CountingStore, tmp_path: Path) -> None:
    tiered = tier_at(tmp_path, 4096).over(store)
    assert bytes(tiered.get_range("data/a.lance", 0, 5000)) == CONTENT[:5000]
    assert files_in(tmp_path) == []


def test_a_lost_count_is_taken_anew_and_abandoned_files_go(tmp_path: Path) -> None:
    budget = DiskBudget(tmp_path / "tier", 3 * 4096)
    folder = tmp_path / "tier" / "ab"
    folder.mkdir()
    (folder / "0-10").write_bytes(bytes(10))
    abandoned = folder / ".new-0123"
    abandoned.write_bytes(bytes(10))
    os.utime(abandoned, (0, 0))
    under_way = folder / ".new-4567"
    under_way.write_bytes(bytes(10))
    (tmp_path / "tier" / ".used").unlink()
    assert budget.used_bytes == 2 * 4096
    assert not abandoned.exists()
    assert under_way.exists()
    assert budget.take(10, tmp_path / "tier" / ".new-1")
    assert budget.used_bytes == 3 * 4096


def fill(store: CountingStore, folder: Path, number: int) -> DiskTier:
    """Read some ranges that take a block of the disk each."""
    tier = tier_at(folder)
    tiered = tier.over(store)
    for start in range(0, 100 * number, 100):
        tiered.get_range("data/a.lance", start, start + 50)
    assert tier.stats.used_bytes == number * 4096
    return tier


def really_used(folder: Path) -> int:
    return sum(bytes_on_disk(file.stat().st_size) for file in files_in(folder))


def test_a_smaller_budget_holds_from_the_beginning(store: CountingStore, tmp_path: Path) -> None:
    fill(store, tmp_path, 10)
    assert really_used(tmp_path) == 10 * 4096
    assert tier_at(tmp_path, 8 * 4096).stats.used_bytes == really_used(tmp_path) == 7 * 4096
    assert tier_at(tmp_path, 8 * 4096).stats.used_bytes == really_used(tmp_path) == 7 * 4096
    assert tier_at(tmp_path, 1).stats.used_bytes == really_used(tmp_path) == 0


def test_files_that_are_gone_do_not_count_at_the_next_opening(
    store: CountingStore, tmp_path: Path
) -> None:
    fill(store, tmp_path, 10)
    for file in files_in(tmp_path)[:4]:
        file.unlink()
    assert tier_at(tmp_path).stats.used_bytes == really_used(tmp_path) == 6 * 4096


@pytest.mark.parametrize("damage", ["gone", "empty"])
def test_files_found_gone_or_damaged_do_not_count_for_long(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    tier = fill(store, tmp_path, 10)
    tiered = tier.over(store)
    for number, file in enumerate(files_in(tmp_path)):
        if damage == "empty":
            file.write_bytes(b"")
        elif number != 3:
            file.unlink()
    tiered.get_range("data/a.lance", 0, 50)
    assert tier.stats.used_bytes == 10 * 4096 + 4096  # not counted each time
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 100)
    tiered.get_range("data/a.lance", 100, 150)
    assert tier.stats.used_bytes == really_used(tmp_path) <= 3 * 4096


def test_of_racing_writers_none_goes_beyond_the_budget(tmp_path: Path) -> None:
    inner = MemoryStore()
    inner.put("_versions/1.manifest", b"")
    inner.put("data/a", bytes(range(256)) * 4096)
    together = threading.Barrier(4)

    def read(seed: int) -> None:
        tiered = tier_at(tmp_path, 20 * 4096).over(inner)
        generator = np.random.default_rng(seed)
        together.wait()
        for _ in range(150):
            start = int(generator.integers(0, 1 << 19))
            end = start + int(generator.integers(1, 9_000))
            view = tiered.get_range("data/a", start, end)
            assert bytes(view) == bytes(inner.get_range("data/a", start, end))

    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(read, range(4)):
            pass
    used = sum(bytes_on_disk(file.stat().st_size) for file in files_in(tmp_path))
    assert used <= 20 * 4096


def test_a_disk_that_fails_costs_nothing_but_time(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiered = tier_at(tmp_path).over(store)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    for _ in range(2):
        assert bytes(tiered.get_range("data/a.lance", 0, 100)) == CONTENT[:100]
    assert len(store.ranges) == 2


def test_writing_over_a_kept_object_forgets_it(store: CountingStore, tmp_path: Path) -> None:
    tiered = tier_at(tmp_path).over(store)
    tiered.get_range("data/a.lance", 0, 4)
    tiered.put("data/a.lance", b"4567")
    assert bytes(tiered.get_range("data/a.lance", 0, 4)) == b"4567"
    tiered.delete("data/a.lance")
    with pytest.raises(ObjectNotFoundError):
        tiered.get_range("data/a.lance", 0, 4)


def test_a_range_outside_the_object_is_corruption_as_ever(
    store: CountingStore, tmp_path: Path
) -> None:
    tiered = tier_at(tmp_path).over(store)
    for start, end in [(0, len(CONTENT) + 1), (3, 2), (-1, 2)]:
        with pytest.raises(CorruptFileError):
            tiered.get_range("data/a.lance", start, end)
    assert files_in(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InvalidRequestError, match="disk cache"):
        tier_at(tmp_path / "file" / "below")


def test_others_cannot_look_into_the_folder(tmp_path: Path) -> None:
    tier_at(tmp_path / "tier")
    assert (tmp_path / "tier").stat().st_mode & 0o077 == 0


def test_the_size_of_an_object_is_asked_for_once(store: CountingStore, tmp_path: Path) -> None:
    for _ in range(2):
        scheduler = RangeScheduler(tier_at(tmp_path).over(store))
        tail = scheduler.tail("data/a.lance", None, 10)
        assert (bytes(tail.view), tail.size) == (CONTENT[-10:], len(CONTENT))
    # The first asks for the manifests, the size and the bytes, the second for the manifests.
    assert store.num_requests == 4
