"""What manifests say of vector indices, and whether models code alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.build.given_parameters import vector_parameters
from lance_core.index.vector.build.model import (
    GraphParameters,
    PqCoding,
    RabitCoding,
    SqCoding,
    VectorModel,
)
from lance_core.index.vector.build.model_form import index_details
from lance_core.index.vector.build.same_model import same_model
from lance_core.index.vector.build.stored_parameters import (
    asked_details,
    stored_parameters,
    with_files,
)
from lance_core.index.vector.build.untrained import untrained
from lance_core.index.vector.metric import Metric
from lance_core.proto import index_pb2

if TYPE_CHECKING:
    from lance_core.index.vector.build.model import Coding

COLUMN = pa.list_(pa.float32(), 16)
GRAPH = {"m": 12, "ef_construction": 50, "max_level": 5}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("IVF_FLAT", {"metric": "dot"}),
    ("IVF_SQ", {"metric": "l2"}),
    ("IVF_PQ", {"metric": "cosine", "num_bits": 4, "num_sub_vectors": 8}),
    ("IVF_RQ", {"metric": "l2", "num_bits": 3, "rotation_type": "matrix"}),
    ("IVF_RQ", {"metric": "dot", "num_bits": 7, "rotation_type": "fast"}),
    ("IVF_HNSW_FLAT", {"metric": "cosine", **GRAPH}),
    ("IVF_HNSW_SQ", {"metric": "l2", **GRAPH}),
    ("IVF_HNSW_PQ", {"metric": "dot", "num_bits": 8, "num_sub_vectors": 2, **GRAPH}),
]


@pytest.mark.parametrize(("index_type", "given"), ASKED)
def test_details_tell_again_what_was_asked_for(index_type: str, given: dict[str, Any]) -> None:
    model = untrained(vector_parameters(index_type, COLUMN, given))
    assert (model.num_partitions, model.dimension) == (0, 16)
    assert stored_parameters(index_details(model).value) == (index_type, given)
    details = with_files(asked_details({"target_partition_size": 77}), index_details(model).value)
    wanted = {**given, "target_partition_size": 77}
    assert stored_parameters(details) == (index_type, wanted)


def test_files_are_believed_and_what_only_manifests_tell_is_kept() -> None:
    stored = index_pb2.VectorIndexDetails(metric_type=index_pb2.VectorMetricType.Cosine)
    stored.pq.num_bits, stored.pq.num_sub_vectors = 8, 4
    stored.runtime_hints["lance.ivf.max_iters"] = "50"
    files = vector_parameters("IVF_SQ", COLUMN, {"metric": "l2"})
    found = with_files(stored.SerializeToString(), index_details(untrained(files)).value)
    assert stored_parameters(found) == ("IVF_SQ", {"metric": "l2"})
    whole = index_pb2.VectorIndexDetails.FromString(found)
    assert dict(whole.runtime_hints) == {"lance.ivf.max_iters": "50"}
    plain = index_details(untrained(files)).value
    assert with_files(b"\xff", plain) == plain


@pytest.mark.parametrize("details", [b"", b"\xff\xff", b"\x08\x63"])
def test_details_that_tell_nothing_are_no_request(details: bytes) -> None:
    with pytest.raises(UnusableSegmentError):
        stored_parameters(details)


def test_models_are_the_same_if_every_vector_gets_the_same_code() -> None:
    generator = np.random.default_rng(3)
    centroids = generator.random((3, 16), np.float32)
    codebook = generator.random((4, 16, 4), np.float32)
    matrix = generator.random((16, 16), np.float32)
    codings: list[Coding] = [
        SqCoding(0, 1),
        SqCoding(0, 2),
        PqCoding(4, codebook),
        PqCoding(4, codebook + 1),
        RabitCoding(3, b"signs"),
        RabitCoding(4, b"signs"),
        RabitCoding(3, b"other"),
        RabitCoding(3, matrix),
        RabitCoding(3, matrix + 1),
    ]
    models = [VectorModel(Metric.L2, pa.float32(), centroids, coding) for coding in codings]
    for number, one in enumerate(models):
        again = replace(one, centroids=centroids.copy(), loss=4.0)
        assert [same_model(each, again) for each in models] == [
            place == number for place in range(len(models))
        ]
    first = models[0]
    graph = replace(first, graph=GraphParameters())
    assert same_model(graph, replace(graph, graph=GraphParameters(max_connections=9)))
    for other in (
        graph,
        replace(first, metric=Metric.DOT),
        replace(first, value_type=pa.float64()),
        replace(first, centroids=centroids[:2]),
    ):
        assert not same_model(first, other)
