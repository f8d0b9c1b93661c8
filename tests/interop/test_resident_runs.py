"""A run that may not wait either answers from memory or says that it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset import Dataset
from lance_core.errors import CancelledByClientError, DeadlineExceededError, TypeMismatchError
from lance_core.io.counting_store import CountingStore
from lance_core.io.open import open_store
from lance_core.kernels import ivf_flat, ivf_pq, rank
from lance_core.query.deadline import Deadline
from lance_core.query.request import ScanQuery, VectorQuery
from lance_core.query.residency import NotResidentError
from lance_core.query.session import Session
from lance_core.table.snapshot import open_snapshot

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

DIMENSION = 64


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resident") / "t.lance"
    vectors = np.random.default_rng(2).standard_normal((3000, DIMENSION)).astype(np.float32)
    table = pa.table(
        {
            "id": np.arange(3000),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        }
    )
    dataset = lance.write_dataset(table.slice(0, 2600), str(folder))
    dataset.create_index("vec", "IVF_PQ", num_partitions=10, num_sub_vectors=8)
    dataset.insert(table.slice(2600))
    dataset.delete("id % 9 = 1")
    return folder


def request(seed: int = 0, **given) -> VectorQuery:
    vector = np.random.default_rng(seed).standard_normal((1, DIMENSION)).astype(np.float32)
    return VectorQuery(vectors=vector, min_probes=3, max_probes=3, **given)


def test_a_first_query_is_not_resident_and_its_repetition_is(root):
    dataset = lance_core.open_dataset(str(root))
    with pytest.raises(NotResidentError):
        dataset.run(request(), resident_only=True)
    waited = dataset.run(request()).table
    assert dataset.run(request(), resident_only=True).table.equals(waited)


def test_other_partitions_are_not_resident_until_they_are_read(root):
    dataset = lance_core.open_dataset(str(root))
    dataset.run(request(0))
    seeds = range(1, 40)
    states = []
    for seed in seeds:
        try:
            found = dataset.run(request(seed), resident_only=True)
        except NotResidentError:
            states.append(False)
        else:
            states.append(True)
            assert found.table.equals(dataset.run(request(seed)).table)
    assert not all(states)


def test_what_was_evicted_is_not_resident_any_more(root):
    dataset = lance_core.open_dataset(str(root))
    dataset.run(request())
    dataset.session.cache.clear()
    with pytest.raises(NotResidentError):
        dataset.run(request(), resident_only=True)
    assert dataset.run(request()).table.num_rows == 10


def test_a_plain_query_is_never_answered_at_once(root):
    dataset = lance_core.open_dataset(str(root))
    with pytest.raises(NotResidentError):
        dataset.run(ScanQuery(limit=1), resident_only=True)


def test_a_store_that_is_not_mapped_is_never_answered_at_once(root):
    session = Session()
    store = CountingStore(open_store(str(root)))
    dataset = Dataset(session, open_snapshot(session.scheduler_for(store)))
    dataset.run(request())
    with pytest.raises(NotResidentError):
        dataset.run(request(), resident_only=True)


def test_a_cache_without_room_gives_the_same_answers(root):
    roomy = lance_core.open_dataset(str(root))
    cramped = lance_core.open_dataset(str(root), session=Session(cache_bytes=0))
    for seed in range(5):
        asked = request(seed, refine_factor=3)
        assert cramped.run(asked).table.equals(roomy.run(asked).table)
    assert cramped.session.cache_stats.used_bytes == 0


def test_a_deadline_that_passed_stops_the_search(root):
    dataset = lance_core.open_dataset(str(root))
    with pytest.raises(DeadlineExceededError, match="while"):
        dataset.run(request(), Deadline.after(-1))


def test_a_caller_that_left_stops_the_search(root):
    dataset = lance_core.open_dataset(str(root))
    with pytest.raises(CancelledByClientError):
        dataset.run(request(), Deadline(is_cancelled=lambda: True))


def test_queries_compile_no_kernel_anew(root):
    dataset = lance_core.open_dataset(str(root))
    dataset.run(request())
    kernels: list[Any] = [ivf_pq._search_pq, ivf_flat._search_flat, rank.nearest_of_few]
    before = [len(kernel.signatures) for kernel in kernels]
    for seed in range(3):
        dataset.run(request(seed, refine_factor=2, k=7, offset=3))
        dataset.run(request(seed, use_index=False, lower_bound=0.5))
    assert [len(kernel.signatures) for kernel in kernels] == before


def test_hamming_does_not_fit_a_column_of_floats(root):
    dataset = lance_core.open_dataset(str(root))
    with pytest.raises(TypeMismatchError, match="hamming compares bits of uint8"):
        dataset.run(request(metric="hamming"))
