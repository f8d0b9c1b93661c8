"""When the model of a vector index does not fit its rows any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.build.assign import assign
from lance_core.index.vector.build.parameters import VectorParameters
from lance_core.index.vector.build.stored_model import stored_model
from lance_core.index.vector.metric import Metric
from lance_core.index.vector.segment import VectorSegment
from lance_core.operations.new_index import recipe_of
from lance_core.operations.optimize_indices import index_work
from lance_core.operations.sample_vectors import sample_vectors
from lance_core.operations.segment_anew import SegmentAnew
from lance_core.operations.write_segment import MEMORY_BYTES
from pipeline.fragment_groups import fragment_sizes
from pipeline.vector_details import training_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.dataset import Dataset
    from lance_core.index.vector.build.model import VectorModel
    from lance_core.operations.index_state import IndexState, SegmentState

_SAMPLE_SIZE = 8192
_WORTH_A_MODEL = 10
"""New rows are looked at from a tenth of all on: a model would hardly be made for fewer."""


def reason_to_retrain(
    dataset: Dataset, state: IndexState, growth: float | None, error: float | None
) -> str | None:
    """Tell why an index of vectors needs a new model, None if it does not or nobody knows.

    Parameters
    ----------
    dataset
        The version.
    state
        The index.
    growth
        How many times the rows that it was trained with are too many; None = any are fine.
    error
        How many times as far from their centroids new rows may not be; None = they may.

    Notes
    -----
    Spark page, section 10.4.
    """
    known = [(each, training_of(each.entry)) for each in state.useful]
    trained = [(each, found) for each, found in known if found is not None]
    if len(trained) == 0:
        return None
    newest, training = trained[-1]
    sizes = fragment_sizes(dataset, BitMap(dataset.snapshot.fragments_by_id))
    num_rows = sum(each.num_rows for each in sizes)
    if growth is not None and num_rows > growth * training.num_rows:
        return f"there are {num_rows} rows, and it was trained with {training.num_rows}"
    fresh = sum(each.num_rows for each in sizes if each.id in state.uncovered)
    if error is None or training.mean_distance is None or fresh * _WORTH_A_MODEL < num_rows:
        return None
    found = _distance_of_new_rows(dataset, state, newest)
    if found is None or found <= error * training.mean_distance:
        return None
    return (
        f"new rows are {found:.4g} from their centroids on average, and those that it was trained"
        f" with {training.mean_distance:.4g}"
    )


def mean_distance(vectors: NDArray[np.generic], model: VectorModel) -> float | None:
    """Return how far vectors are from their centroids on average.

    Parameters
    ----------
    vectors
        Shape ``(n, d)``, at least one, as `usable_vectors` returns them; 8192 of them are looked
        at, as far apart as there are more.
    model
        The model.

    Returns
    -------
    float | None
        None with metrics whose distances do not tell: dot, and hamming.
    """
    if model.metric not in (Metric.L2, Metric.COSINE):
        return None
    count = min(len(vectors), _SAMPLE_SIZE)
    some = vectors[np.arange(count) * len(vectors) // count].astype(np.float32)
    _, distances = assign(some, model.centroids.astype(np.float32), model.metric)
    return float(distances.mean(dtype=np.float64))


def _distance_of_new_rows(
    dataset: Dataset, state: IndexState, segment: SegmentState
) -> float | None:
    files, snapshot, found = dataset.session.files, dataset.snapshot, segment.metadata
    try:
        opened = VectorSegment.open(snapshot.index_place(found), found.uuid, found.files)
        model = stored_model(opened)
    except (UnusableSegmentError, CorruptFileError):
        return None
    work = index_work(files, snapshot, state, state.useful, retrain=True)
    if not isinstance(work, SegmentAnew):
        return None
    parameters = recipe_of(snapshot, work.index)
    if not isinstance(parameters, VectorParameters):
        return None
    sample = sample_vectors(
        files,
        snapshot,
        work.index.column,
        parameters,
        state.uncovered,
        MEMORY_BYTES,
        _SAMPLE_SIZE,
    )
    return mean_distance(sample.vectors.values, model) if len(sample.vectors) > 0 else None
