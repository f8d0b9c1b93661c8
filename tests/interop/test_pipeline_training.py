"""Models trained with samples that tasks draw."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lance_core
from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.vector.build.model import PqCoding, RabitCoding, SqCoding
from lance_core.operations.new_index import NewIndex
from pipeline.errors import JobRunningError
from pipeline.index_items import model_at
from pipeline.lease import Lease
from pipeline.progress import make_progress
from pipeline.sample import TrainOptions
from pipeline.train import train_model, trained_model
from tests.pipeline_stages import LocalStages, local_context
from tests.pipeline_tables import vectors_of, write

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core.index.vector.build.model import VectorModel
    from pipeline.job import JobContext

pytestmark = pytest.mark.interop

NUM_ROWS = 4000
DISTRIBUTED = TrainOptions(mode="distributed")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten fragments of 400 rows, of which the second has lost most."""
    path = tmp_path_factory.mktemp("train") / "t.lance"
    write(path, range(NUM_ROWS), 400).delete("id >= 400 and id < 790")
    return path


def index(index_type: str, **given: object) -> NewIndex:
    return NewIndex("v_idx", "v", index_type, given)


def trained(context: JobContext, wanted: NewIndex, options: TrainOptions) -> VectorModel:
    found = train_model(context, wanted, options=options)
    assert found.uri is not None
    return model_at(found.uri, None)


def loss_of(model: VectorModel) -> float:
    """Return the sum of the distances of all rows to their centroids."""
    vectors = vectors_of(range(NUM_ROWS))
    gaps = vectors[:, None] - model.centroids[None]
    return float((gaps**2).sum(axis=2).min(axis=1).sum())


def test_a_sample_drawn_by_tasks_trains_as_well_as_one_that_the_driver_draws(path: Path) -> None:
    wanted = index("IVF_PQ", num_partitions=8, num_sub_vectors=8, sample_rate=60)
    contexts = [local_context(path, stages=LocalStages()) for _ in range(3)]
    ours = [trained(contexts[each], wanted, DISTRIBUTED) for each in (0, 1)]
    driven = trained(contexts[2], wanted, TrainOptions(mode="driver"))
    assert contexts[0].stages.ran == [("sample", 8)]  # type: ignore[attr-defined]
    assert contexts[2].stages.ran == []  # type: ignore[attr-defined]
    np.testing.assert_array_equal(ours[0].centroids, ours[1].centroids)  # the same once more
    assert loss_of(ours[0]) < 1.1 * loss_of(driven)
    assert isinstance(ours[0].coding, PqCoding)
    assert ours[0].coding.codebook.shape == (8, 256, 2)


def test_bounds_and_rotations_are_those_of_all_fragments(path: Path) -> None:
    vectors = vectors_of([*range(400), *range(790, NUM_ROWS)])
    coding = trained(local_context(path), index("IVF_SQ"), DISTRIBUTED).coding
    assert isinstance(coding, SqCoding)
    assert (coding.start, coding.end) == (vectors.min(), vectors.max())
    rotated = trained(local_context(path), index("IVF_RQ"), DISTRIBUTED).coding
    assert isinstance(rotated, RabitCoding)
    assert isinstance(rotated.rotation, bytes)
    graphs = trained(local_context(path), index("IVF_HNSW_FLAT", m=7), DISTRIBUTED)
    assert graphs.graph is not None
    assert graphs.graph.max_connections == 7


def test_the_sample_is_shared_out_by_live_rows_and_removed_when_it_is_of_no_use(
    path: Path,
) -> None:
    class Watched(LocalStages):
        def run(self, *given: Any, **options: Any) -> list[bytes]:
            results = super().run(*given, **options)
            seen.extend(json.loads(each) for each in results)
            names = [each for each in context.journal.names() if each.endswith(".npy")]
            arrays.extend(np.load(io.BytesIO(context.journal.get(each) or b"")) for each in names)
            return results

    seen: list[dict[str, Any]] = []
    arrays: list[Any] = []
    context = local_context(path, stages=Watched())
    found = train_model(
        context, index("IVF_FLAT", num_partitions=10, sample_rate=50), options=DISTRIBUTED
    )
    assert sum(each["count"] for each in seen) == found.sample_size == 500
    assert sum(map(len, arrays)) == 500
    assert min(each["count"] for each in seen) < 100
    drawn = {each.tobytes() for array in arrays for each in array}
    assert len(drawn) == 500
    assert drawn <= {each.tobytes() for each in vectors_of(range(NUM_ROWS))}
    assert found.training.num_rows == NUM_ROWS - 390
    assert [each for each in context.journal.names() if each.endswith(".npy")] == []


def test_a_sample_beyond_its_cap_is_smaller_and_warns(path: Path) -> None:
    told = io.StringIO()
    context = local_context(path, progress=make_progress("json", told))
    options = TrainOptions(mode="distributed", max_sample_bytes=300 * 64)
    found = train_model(context, index("IVF_FLAT", num_partitions=10), options=options)
    assert found.sample_size == 300
    events = [json.loads(each) for each in told.getvalue().splitlines()]
    (warning,) = [each["message"] for each in events if each["event"] == "warning"]
    assert "300 are drawn" in warning
    assert "30 for each partition" in warning


def test_training_goes_on_at_its_version_when_rows_have_come_meanwhile(tmp_path: Path) -> None:
    class Failing(LocalStages):
        def run(self, *_: Any, **__: Any) -> list[bytes]:
            raise ConnectionError("the driver lost its cluster")

    path = tmp_path / "t.lance"
    write(path, range(400), 100)
    wanted = index("IVF_FLAT", num_partitions=2, sample_rate=20)
    with pytest.raises(ConnectionError):
        train_model(local_context(path, job_id="t", stages=Failing()), wanted, options=DISTRIBUTED)
    write(path, range(400, 600), 100)
    found = train_model(local_context(path, job_id="t"), wanted, options=DISTRIBUTED)
    assert (found.version, found.training.num_rows, found.sample_size) == (1, 400, 40)


def test_training_goes_on_with_the_samples_that_were_drawn(path: Path) -> None:
    class Failing(LocalStages):
        def run(self, name: str, items: Any, worker: Any, **options: Any) -> list[bytes]:
            super().run(name, items[:5], worker)
            raise ConnectionError("the driver lost its cluster")

    wanted = index("IVF_FLAT", num_partitions=4)
    with pytest.raises(ConnectionError):
        train_model(local_context(path, job_id="t", stages=Failing()), wanted, options=DISTRIBUTED)
    assert trained_model(str(path.parent / ".t.lance.pipeline" / "t")) is None
    with pytest.raises(InvalidRequestError, match="begun with other index_type"):
        train_model(local_context(path, job_id="t"), index("IVF_SQ"), options=DISTRIBUTED)
    again = LocalStages()
    context = local_context(path, job_id="t", stages=again)
    found = train_model(context, wanted, options=DISTRIBUTED)
    assert again.ran == [("sample", 3)]
    assert train_model(context, wanted, options=DISTRIBUTED) == found
    assert trained_model(str(path.parent / ".t.lance.pipeline" / "t")) == found
    assert again.ran == [("sample", 3)]
    other = trained(local_context(path), wanted, DISTRIBUTED)
    np.testing.assert_array_equal(model_at(found.uri or "", None).centroids, other.centroids)


def test_one_driver_trains_at_a_time(path: Path) -> None:
    context = local_context(path, job_id="held")
    with Lease(context.journal), pytest.raises(JobRunningError):
        train_model(context, index("IVF_FLAT"))


def test_too_few_vectors_make_no_model(tmp_path: Path) -> None:
    write(tmp_path / "t.lance", range(100), 30)
    found = train_model(local_context(tmp_path / "t.lance"), index("IVF_PQ"), options=DISTRIBUTED)
    assert (found.uri, found.training.num_rows, found.version) == (None, 100, 1)


@pytest.mark.parametrize("mode", ["driver", "distributed"])
def test_the_seed_decides_what_is_drawn_and_trained(path: Path, mode: Any) -> None:
    wanted = index("IVF_FLAT", num_partitions=4, sample_rate=16)
    seeds = [1, 1, 2]
    first, again, other = (
        trained(local_context(path), wanted, TrainOptions(mode, seed=seed)) for seed in seeds
    )
    assert np.array_equal(first.centroids, again.centroids)
    assert not np.array_equal(first.centroids, other.centroids)


def test_what_cannot_be_trained_is_refused(path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="needs no model"):
        train_model(local_context(path), NewIndex("i", "price", "BTREE"))
    with pytest.raises(InvalidRequestError, match="numbers, texts"):
        train_model(local_context(path), index("IVF_FLAT", ivf_centroids=np.zeros((2, 16))))
    with pytest.raises(InvalidRequestError, match="auto, driver or distributed"):
        TrainOptions(mode="all")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="less than 1"):
        TrainOptions(max_sample_bytes=0)
    with pytest.raises(InvalidRequestError, match="seed is -1"):
        TrainOptions(seed=-1)


def test_facts_of_a_model_that_are_none_are_refused(tmp_path: Path) -> None:
    tmp_path.joinpath("model.json").write_text('{"is_trained": true}')
    with pytest.raises(CorruptFileError, match="does not describe"):
        trained_model(str(tmp_path / "model.bin"))


def test_samples_that_were_lost_end_the_job(path: Path) -> None:
    class Losing(LocalStages):
        def run(self, *given: Any, **options: Any) -> list[bytes]:
            results = super().run(*given, **options)
            place = path.parent / ".t.lance.pipeline" / "lost"
            next(iter(place.glob("*.npy"))).unlink()
            return results

    context = local_context(path, job_id="lost", stages=Losing())
    with pytest.raises(lance_core.LanceError, match="is gone"):
        train_model(context, index("IVF_FLAT", num_partitions=4), options=DISTRIBUTED)
