"""Training the model of a vector index: on a sample that tasks draw, or that the driver draws.

::

    <state-uri>/<job id>/
      sample-<uuid>.npy   vectors that one task drew; removed when the model is there
      model.bin           the model, as `lance_core.index.vector.build.model_bytes` writes it
      model.json          what it was trained with; written last
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.index.vector.build.model_bytes import model_to_bytes
from lance_core.index.vector.build.train import train
from lance_core.index.vector.build.usable import UsableVectors
from lance_core.io.deleting import delete_all
from lance_core.operations.indexed_column import checked_fragments
from lance_core.table.dataset_stores import open_folder_beside
from pipeline.index_items import read_object, request_of
from pipeline.lease import Lease
from pipeline.retraining import mean_distance
from pipeline.sample import TrainOptions, drawn_sample, planned_draws, trained_parameters
from pipeline.vector_details import Training

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance_core.index.vector.build.model import VectorModel
    from lance_core.index.vector.build.parameters import VectorParameters
    from lance_core.operations.new_index import NewIndex
    from pipeline.job import JobContext
    from pipeline.journal import JournalPlan
    from pipeline.sample import Sample

KIND = "train"
MODEL, FACTS = "model.bin", "model.json"

_OPTIONS = TrainOptions()


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model that was trained, or that could not be.

    Parameters
    ----------
    uri
        Where it is; None where there were too few vectors.
    training
        About how many vectors the column had, and how far the sample is from its centroids.
    sample_size
        How many it was trained with.
    version
        The version whose rows these are.
    """

    uri: str | None
    training: Training
    sample_size: int
    version: int


def train_model(
    context: JobContext,
    index: NewIndex,
    fragment_ids: Iterable[int] | None = None,
    options: TrainOptions = _OPTIONS,
    *,
    version: int | None = None,
) -> TrainedModel:
    """Train the model of a vector index, or return the one that this job has trained already.

    Parameters
    ----------
    context
        Where the job runs.
    index
        The index.
    fragment_ids
        Fragments to draw from; None = all.
    options
        How.
    version
        The version whose rows are drawn from; None = the latest.

    Raises
    ------
    InvalidRequestError
        It is no vector index, it does not take the column or a parameter, or the job was begun
        for another one.
    JobRunningError
        Another driver is at work on it.
    StageFailedError
        Samples could not be drawn.

    Notes
    -----
    Spark page, section 10.2. Samples go through files, not through Spark.
    """
    found = trained_model(model_uri(context), context.storage_options)
    if found is not None:
        return found
    with Lease(context.journal) as lease:
        plan = _begun(context, index, fragment_ids, options, version)
        dataset = context.open(plan.read_version)
        parameters = trained_parameters(dataset, index)
        sample = drawn_sample(context, dataset, index, parameters, plan.items)
        lease.check()
        model = _trained(context, sample, parameters, options.seed)
        trained = TrainedModel(
            None if model is None else model_uri(context),
            Training(
                sample.num_vectors, None if model is None else mean_distance(sample.vectors, model)
            ),
            len(sample.vectors),
            dataset.version,
        )
        _store(context, model, trained)
        _remove(context, sample.names)
    return trained


def model_uri(context: JobContext) -> str:
    """Return where the model of a job is, or is going to be."""
    return f"{context.state_uri.rstrip('/')}/{context.job_id}/{MODEL}"


def trained_model(
    uri: str, storage_options: Mapping[str, str] | None = None
) -> TrainedModel | None:
    """Return what is known of a model, None if there is none at a place.

    Parameters
    ----------
    uri
        As `train_model` returned it, or the folder that it is in.
    """
    folder = uri.removesuffix(f"/{MODEL}").rstrip("/")
    data = read_object(f"{folder}/{FACTS}", storage_options)
    if data is None:
        return None
    try:
        found = json.loads(data)
        own = f"{folder}/{MODEL}" if found["is_trained"] else None
        distance = found["mean_distance"]
        training = Training(
            int(found["num_vectors"]), None if distance is None else float(distance)
        )
        return TrainedModel(own, training, int(found["sample_size"]), int(found["version"]))
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(
            f"{folder}/{FACTS}", f"does not describe a model: {error}"
        ) from error


def _begun(
    context: JobContext,
    index: NewIndex,
    fragment_ids: Iterable[int] | None,
    options: TrainOptions,
    version: int | None,
) -> JournalPlan:
    """Plan what is drawn, or return the plan that an earlier run has made."""
    wanted = None if fragment_ids is None else sorted(fragment_ids)
    params = {**request_of(index), "fragments": wanted, **asdict(options)}
    stored = context.journal.plan()
    if stored is not None:
        return context.journal.begin(KIND, params, stored.read_version, stored.items)
    dataset = context.open(version)
    parameters = trained_parameters(dataset, index)
    fragments = checked_fragments(dataset.snapshot, wanted)
    draws = planned_draws(context, dataset, index, parameters, fragments, options)
    return context.journal.begin(KIND, params, dataset.version, [each.to_bytes() for each in draws])


def _trained(
    context: JobContext, sample: Sample, parameters: VectorParameters, seed: int
) -> VectorModel | None:
    """Train with a sample; None where it has too few vectors."""
    if len(sample.vectors) < parameters.least_vectors:
        return None
    usable = UsableVectors(sample.vectors, np.zeros(len(sample.vectors), np.uint64))
    with context.progress.phase(KIND, parameters.max_iterations) as phase:
        return train(
            usable,
            parameters,
            sample.num_vectors,
            lambda done, _: phase.update(done),
            seed=seed,
        )


def _store(context: JobContext, model: VectorModel | None, trained: TrainedModel) -> None:
    """Keep a model, then what it was trained with, which tells that the model is there."""
    journal = context.journal
    facts: dict[str, object] = {
        "num_vectors": trained.training.num_rows,
        "mean_distance": trained.training.mean_distance,
        "sample_size": trained.sample_size,
        "version": trained.version,
        "is_trained": model is not None,
    }
    if model is not None:
        journal.put(MODEL, model_to_bytes(model))
        facts |= {"loss": model.loss, "num_partitions": model.num_partitions}
    journal.put(FACTS, json.dumps(facts).encode())
    journal.mark_committed(trained.version)
    context.progress.event("trained", model=trained.uri, **facts)


def _remove(context: JobContext, names: Sequence[str]) -> None:
    store = open_folder_beside(context.state_uri, context.storage_options)
    delete_all(store, [f"{context.job_id}/{name}" for name in names])
