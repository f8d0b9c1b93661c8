"""Ten million addresses through five deferred compactions: time, and memory beside the input."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from pyroaring import BitMap

from lance_core.ids import FragmentId
from lance_core.row_address import ROW_ADDRESS_TOMBSTONE
from lance_core.table.reuse_history import FragmentDigest, ReuseGroup, ReuseHistory, ReuseVersion
from lance_core.table.reuse_map import AddressMap
from lance_core.table.treemap import encode_treemap

NUM_ROWS, FRAGMENT_ROWS, NUM_VERSIONS, DELETED = 10_000_000, 1_000_000, 5, 0.05


def chain(rng: np.random.Generator) -> ReuseHistory:
    """Compact pairs of fragments again and again, with random deletions before each time."""
    sizes = dict.fromkeys(range(NUM_ROWS // FRAGMENT_ROWS), FRAGMENT_ROWS)
    versions = []
    for version in range(NUM_VERSIONS):
        groups = []
        for pair in np.array(list(sizes)).reshape(-1, 2).tolist():
            parts = {
                f: BitMap(np.flatnonzero(rng.random(sizes[f]) >= DELETED).astype(np.uint32))
                for f in pair
            }
            old = [FragmentDigest(FragmentId(f), sizes[f], sizes[f] - len(parts[f])) for f in pair]
            total = sum(each.num_live_rows for each in old)
            new = [
                FragmentDigest(FragmentId(f + len(sizes)), rows, 0)
                for f, rows in zip(pair, (total // 3, total - total // 3), strict=True)
            ]
            groups.append(ReuseGroup(encode_treemap(parts), tuple(old), tuple(new)))
        versions.append(ReuseVersion(version + 1, tuple(groups)))
        sizes = {int(each.id): each.physical_rows for g in groups for each in g.new_fragments}
    return ReuseHistory(tuple(versions))


@pytest.mark.slow
def test_ten_million_addresses_go_through_five_versions_in_little_time_and_memory() -> None:
    rng = np.random.default_rng(0)
    history = chain(rng)
    rows = np.arange(NUM_ROWS, dtype=np.uint64)
    addresses = rng.permutation((rows // FRAGMENT_ROWS << 32) | rows % FRAGMENT_ROWS)
    AddressMap(ReuseHistory(history.versions[:1]), "x").map_addresses(addresses[:1])  # compiles
    started = time.thread_time()
    mapped = AddressMap(history, "x").map_addresses(addresses)
    assert time.thread_time() - started < 1.5
    survived = np.count_nonzero(mapped != ROW_ADDRESS_TOMBSTONE) / NUM_ROWS
    assert survived == pytest.approx((1 - DELETED) ** NUM_VERSIONS, abs=0.01)
    del mapped
    tracemalloc.start()
    AddressMap(history, "x").map_addresses(addresses)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak + addresses.nbytes <= 3 * addresses.nbytes, peak / addresses.nbytes
