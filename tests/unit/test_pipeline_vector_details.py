"""What segments of vectors say of their training."""

from __future__ import annotations

import pytest
from google.protobuf import any_pb2

from lance_core.proto import index_pb2, table_pb2
from pipeline.vector_details import Training, has_graphs, training_of, with_training

VECTORS = "/lance.index.pb.VectorIndexDetails"


def segment(type_url: str = VECTORS, value: bytes = b"") -> table_pb2.IndexMetadata:
    return table_pb2.IndexMetadata(
        name="v_idx", index_details=any_pb2.Any(type_url=type_url, value=value)
    )


@pytest.mark.parametrize("training", [Training(7, 0.1 + 0.2), Training(0, None)])
def test_training_is_read_back_beside_what_others_wrote(training: Training) -> None:
    details = index_pb2.VectorIndexDetails(target_partition_size=5)
    details.runtime_hints["lance.ivf.max_iters"] = "50"
    told = with_training(segment(value=details.SerializeToString()), training)
    assert training_of(told) == training
    found = index_pb2.VectorIndexDetails.FromString(told.index_details.value)
    assert found.target_partition_size == 5
    assert found.runtime_hints["lance.ivf.max_iters"] == "50"


@pytest.mark.parametrize(("key", "text"), [("rows", "many"), ("distance", "far"), ("rows", "")])
def test_hints_that_others_spoilt_say_nothing(key: str, text: str) -> None:
    told = with_training(segment(), Training(7, 0.5))
    details = index_pb2.VectorIndexDetails.FromString(told.index_details.value)
    details.runtime_hints[f"lance_serve.trained_{key}"] = text
    assert training_of(segment(value=details.SerializeToString())) is None


def test_segments_of_other_kinds_and_damaged_details_say_nothing() -> None:
    for each in (segment("/lance.index.pb.BTreeIndexDetails"), segment(value=b"\xff"), segment()):
        assert training_of(each) is None
        assert not has_graphs(each)
    graphs = index_pb2.VectorIndexDetails()
    graphs.hnsw_index_config.max_connections = 20
    assert has_graphs(segment(value=graphs.SerializeToString()))
