"""The sample that a model is trained with: vectors that tasks draw, each from its fragments.

They go through files beside the journal, not through Spark.
"""

from __future__ import annotations

import io
import json
import uuid
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pyroaring import BitMap

from lance_core.errors import InvalidRequestError, ObjectNotFoundError
from lance_core.index.vector.build.budget import LEAST_GRAPH_BYTES
from lance_core.index.vector.build.kmeans import SEED
from lance_core.index.vector.build.parameters import VectorParameters
from lance_core.operations.new_index import recipe_of
from lance_core.operations.sample_vectors import sample_vectors
from pipeline.fragment_groups import fragment_sizes
from pipeline.index_items import Source
from pipeline.job import work_and_record
from pipeline.plan import GroupSizes, group_fragments, sample_quota

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.dataset import Dataset
    from lance_core.operations.new_index import NewIndex
    from lance_core.operations.sample_vectors import VectorSample
    from pipeline.job import JobContext
    from pipeline.journal import Journal

_STAGE = "sample"
_NUMBER_BYTES = 8
_TASK_BYTES = 64 << 20
"""Vectors that one task draws at most, about."""
_LEAST_TASKS = 8
_DRIVER_BYTES = 64 << 20
"""A sample as small is not worth tasks."""
_LEAST_RATE = 32
_NUM_SEEDS = 1 << 32
_SPARE_BYTES = 96 << 20


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """How a model is trained.

    Parameters
    ----------
    mode
        ``driver`` lets the driver read the sample, ``distributed`` lets tasks do so; ``auto`` takes
        tasks for samples of more than 64 MiB.
    max_sample_bytes
        What the sample may take in the driver; a larger one is made smaller, with a warning.
    seed
        Of what is drawn and of what training starts with, from 0 to 4294967295: the same rows,
        options and seed give the same model.
    """

    mode: Literal["auto", "driver", "distributed"] = "auto"
    max_sample_bytes: int = 2 << 30
    seed: int = SEED

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "driver", "distributed"):
            raise InvalidRequestError(f"mode is {self.mode!r}; give auto, driver or distributed")
        if self.max_sample_bytes < 1:
            raise InvalidRequestError("max_sample_bytes is less than 1")
        if not 0 <= self.seed < _NUM_SEEDS:
            raise InvalidRequestError(
                f"seed is {self.seed}; give a number from 0 to {_NUM_SEEDS - 1}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Vectors that were drawn.

    Parameters
    ----------
    vectors
        Shape ``(n, d)``, in the type of the column.
    num_vectors
        About how many usable vectors there are.
    names
        Objects of the journal that held them.
    """

    vectors: NDArray[Any]
    num_vectors: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draw:
    """What a task draws: so many vectors of some fragments."""

    fragments: tuple[int, ...]
    wanted: int
    seed: int

    def to_bytes(self) -> bytes:
        """Return the draw as `parse` takes it."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, data: bytes) -> Draw:
        """Return the draw that bytes are of."""
        found = json.loads(data)
        return cls(tuple(map(int, found["fragments"])), int(found["wanted"]), int(found["seed"]))


def planned_draws(
    context: JobContext,
    dataset: Dataset,
    index: NewIndex,
    parameters: VectorParameters,
    fragments: BitMap,
    options: TrainOptions,
) -> list[Draw]:
    """Tell what tasks draw; of a sample for the driver to draw there is one piece.

    Parameters
    ----------
    context
        Hears where the sample is smaller than it should be.
    dataset
        The version.
    index, parameters
        The index, and what is asked of it.
    fragments
        Fragments to draw from.
    options
        Who draws, and how much.
    """
    sizes = fragment_sizes(dataset, fragments)
    wanted = parameters.sample_size(sum(each.num_rows for each in sizes))
    most = max(options.max_sample_bytes // _vector_bytes(parameters), parameters.least_vectors)
    if wanted > most:
        rate = max(parameters.sample_rate * most // wanted, 1)
        context.progress.event(
            "warning",
            message=f"the sample of {wanted} vectors is more than max_sample_bytes: {most} are"
            f" drawn, about {rate} for each partition of {index.name!r}"
            + (f"; fewer than {_LEAST_RATE} make poor partitions" if rate < _LEAST_RATE else ""),
        )
        wanted = most
    num_bytes = wanted * _vector_bytes(parameters)
    is_small = options.mode == "auto" and num_bytes <= _DRIVER_BYTES
    if options.mode == "driver" or is_small or len(sizes) == 0:
        return [Draw(tuple(fragments), wanted, options.seed)]
    number = max(-(-num_bytes // _TASK_BYTES), _LEAST_TASKS)
    groups = group_fragments(sizes, GroupSizes(num_segments=number))
    rows = {each.id: each.num_rows for each in sizes}
    quota = sample_quota([sum(rows[each] for each in group) for group in groups], wanted)
    return [Draw(tuple(group), own, options.seed) for group, own in zip(groups, quota, strict=True)]


def drawn_sample(
    context: JobContext,
    dataset: Dataset,
    index: NewIndex,
    parameters: VectorParameters,
    items: Sequence[bytes],
) -> Sample:
    """Draw a sample, by tasks where there are several draws; what was drawn before is taken as is.

    Parameters
    ----------
    context
        Where the job runs.
    dataset
        The version.
    index, parameters
        The index, and what is asked of it.
    items
        What `planned_draws` returned, as bytes.
    """
    if len(items) == 1:
        drawn = _drawn(dataset, index, parameters, Draw.parse(items[0]))
        return Sample(drawn.vectors.values, drawn.num_vectors, ())
    journal = context.journal
    worker = partial(draw_sample, Source.of(context), dataset.version, index, journal)
    done = journal.recorded()
    missing = [each for each in range(len(items)) if each not in done]
    numbered = [each.to_bytes(_NUMBER_BYTES, "big") + items[each] for each in missing]
    weights = [Draw.parse(items[each]).wanted for each in missing]
    found = context.stages.run(
        _STAGE, numbered, partial(work_and_record, journal, worker), weights=weights
    )
    done |= dict(zip(missing, found, strict=True))
    facts = [json.loads(done[each]) for each in range(len(items))]
    names = [str(each["sample"]) for each in facts]
    column = parameters.column
    shape = sum(int(each["count"]) for each in facts), column.dimension
    vectors = np.empty(shape, column.value_type.to_pandas_dtype())
    stop = 0
    for name, each in zip(names, facts, strict=True):  # one at a time: there may be no room for all
        start, stop = stop, stop + int(each["count"])
        vectors[start:stop] = _stored(journal, name)
    return Sample(vectors, sum(int(each["num_vectors"]) for each in facts), tuple(names))


def draw_sample(
    source: Source, version: int, index: NewIndex, journal: Journal, item: bytes
) -> bytes:
    """Draw vectors and store them beside the journal; runs in a worker."""
    draw = Draw.parse(item)
    dataset = source.open(version)
    parameters = trained_parameters(dataset, index)
    sample = _drawn(dataset, index, parameters, draw)
    name = f"sample-{uuid.uuid4().hex}.npy"
    file = io.BytesIO()
    np.save(file, sample.vectors.values, allow_pickle=False)
    journal.put(name, file.getvalue())
    facts = {"sample": name, "count": len(sample.vectors), "num_vectors": sample.num_vectors}
    return json.dumps(facts).encode()


def trained_parameters(dataset: Dataset, index: NewIndex) -> VectorParameters:
    """Return what is asked of an index of vectors; ``InvalidRequestError`` for other ones."""
    parameters = recipe_of(dataset.snapshot, index)
    if not isinstance(parameters, VectorParameters):
        raise InvalidRequestError(f"a {index.index_type} index needs no model")
    return parameters


def _drawn(
    dataset: Dataset, index: NewIndex, parameters: VectorParameters, draw: Draw
) -> VectorSample:
    sample_bytes = draw.wanted * _vector_bytes(parameters)
    return sample_vectors(
        dataset.session.files,
        dataset.snapshot,
        index.column,
        parameters,
        BitMap(draw.fragments),
        max(2 * sample_bytes + _SPARE_BYTES, LEAST_GRAPH_BYTES),
        draw.wanted,
        seed=draw.seed,
    )


def _stored(journal: Journal, name: str) -> NDArray[Any]:
    data = journal.get(name)
    if data is None:
        raise ObjectNotFoundError(
            f"{name} of job {journal.job_id!r} is gone; begin again under another job id"
        )
    found: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return found


def _vector_bytes(parameters: VectorParameters) -> int:
    column = parameters.column
    return column.dimension * int(np.dtype(column.value_type.to_pandas_dtype()).itemsize)
