from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import given, strategies as st

from lance_core.kernels.topk import TopRows, distance_of, keep_smallest, offer_rows, pack_key
from lance_core.row_set import words_of
from tests.kernel_blocks import all_rows, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

# few distinct values make ties, which is where the order of rows could show
tied = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 0.25, 1.0, np.inf, np.nan])
any_float = st.floats(width=32)
distances = hnp.arrays(np.float32, st.integers(0, 600), elements=tied | any_float)
few = st.integers(0, 700)


def offer(top: TopRows, given_distances: NDArray[np.float32], ordinals: NDArray[np.uint32]) -> None:
    words = all_rows(1000)
    offer_rows(given_distances, ordinals, words, top.keys, top.state, top.k, top.lower)


def listed(top: TopRows) -> tuple[list[float], list[int]]:
    found, ordinals = top.nearest()
    return found.tolist(), ordinals.tolist()


@given(distances=distances, k=few, seed=st.integers(0, 99))
def test_the_kept_rows_are_the_first_of_all_rows_sorted(
    distances: NDArray[np.float32], k: int, seed: int
) -> None:
    ordinals = np.random.default_rng(seed).permutation(1000)[: len(distances)].astype(np.uint32)
    top = TopRows(k, len(distances))
    offer(top, distances, ordinals)
    assert listed(top) == nearest(distances, ordinals, k)
    assert top.num_found == len(top.nearest()[0])


@given(distances=distances, k=few, cuts=st.lists(st.integers(0, 600), max_size=4))
def test_offering_in_parts_and_merging_gives_the_same_as_offering_at_once(
    distances: NDArray[np.float32], k: int, cuts: list[int]
) -> None:
    ordinals = np.arange(len(distances), dtype=np.uint32)
    merged = TopRows(k, len(distances))
    for part in np.split(np.arange(len(distances)), sorted(cuts)):
        own = TopRows(k, len(distances))
        offer(own, distances[part], ordinals[part])
        merged.merge(own)
    assert listed(merged) == nearest(distances, ordinals, k)


@given(distances=distances, k=st.integers(1, 5), alive=st.sets(st.integers(0, 599)))
def test_rows_outside_the_mask_take_no_place(
    distances: NDArray[np.float32], k: int, alive: set[int]
) -> None:
    members = np.array(sorted(alive), np.uint32)
    ordinals = np.arange(len(distances), dtype=np.uint32)
    top = TopRows(k, len(distances))
    words = words_of(members, 1000)
    offer_rows(distances, ordinals, words, top.keys, top.state, top.k, top.lower)
    lives = np.isin(np.arange(1000), members)
    assert listed(top) == nearest(distances, ordinals, k, alive=lives)


bounds = st.none() | st.sampled_from([-np.inf, np.inf, 0.0, -0.0, 0.25, 1e300]) | any_float


@given(distances=distances, k=few, lower=bounds, upper=bounds)
def test_a_range_holds_its_lower_end_and_not_its_upper(
    distances: NDArray[np.float32], k: int, lower: float | None, upper: float | None
) -> None:
    lower = None if lower is None or np.isnan(lower) else lower
    upper = None if upper is None or np.isnan(upper) else upper
    ordinals = np.arange(len(distances), dtype=np.uint32)
    top = TopRows(k, len(distances), lower, upper)
    offer(top, distances, ordinals)
    with np.errstate(over="ignore"):
        expected = nearest(distances, ordinals, k, lower=lower, upper=upper)
    assert listed(top) == expected


@given(a=any_float, b=any_float, i=st.integers(0, 2**32 - 1), j=st.integers(0, 2**32 - 1))
def test_keys_order_by_distance_and_then_ordinal(a: float, b: float, i: int, j: int) -> None:
    if np.isnan(a) or np.isnan(b):
        return
    x = pack_key(np.float32(a), np.uint32(i))
    y = pack_key(np.float32(b), np.uint32(j))
    assert (x < y) == ((a, i) < (b, j))
    assert distance_of(np.uint64(x)) == np.float32(a)


@given(
    keys=hnp.arrays(np.uint64, st.integers(1, 300), elements=st.integers(0, 50)),
    data=st.data(),
)
def test_selection_moves_the_smallest_keys_to_the_front(
    keys: NDArray[np.uint64], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(keys)))
    expected = np.sort(keys)[:k]
    worst = keep_smallest(keys, k)
    assert np.sort(keys[:k]).tolist() == expected.tolist()
    assert worst == expected[-1]


def test_memory_is_bounded_by_the_rows_and_not_by_k() -> None:
    top = TopRows(2**63 - 1, 10)
    assert top.k == 10
    assert top.keys.nbytes < 2048


def test_equal_keys_do_not_make_selection_slow() -> None:
    keys = np.full(400_000, 7, np.uint64)
    assert keep_smallest(keys, 200_000) == 7
