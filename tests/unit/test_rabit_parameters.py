from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lance_core.errors import CorruptFileError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.rabit_parameters import (
    RabitParameters,
    read_rabit_parameters,
    read_rotation_matrix,
    sign_factors,
)
from lance_core.proto import index_pb2

PATH = "x/auxiliary.idx"
DIMENSION = 16
SIGNS = [1, 0, 255, 0, 0, 0, 0, 128]


def stored(**changes: Any) -> dict[str, Any]:
    """Return what pylance 14.0.2 writes, changed; None takes a member away."""
    members = {
        "rotate_mat_position": None,
        "fast_rotation_signs": SIGNS,
        "rotation_type": "fast",
        "code_dim": DIMENSION,
        "num_bits": 5,
        "packed": True,
        "query_estimator": "raw_query",
        **changes,
    }
    return {name: value for name, value in members.items() if value is not None}


def read(**changes: Any) -> RabitParameters:
    return read_rabit_parameters(stored(**changes), DIMENSION, PATH)


def test_the_metadata_of_pylance_14_is_read() -> None:
    assert read() == RabitParameters(5, True, False, bytes(SIGNS), None)


def test_codes_of_early_releases_are_for_residuals_turned_by_a_matrix() -> None:
    early = {"rotate_mat_position": 2, "num_bits": 1, "packed": True}
    parameters = read_rabit_parameters(early, DIMENSION, PATH)
    assert parameters == RabitParameters(1, True, True, None, 2)


def test_codes_may_lie_row_by_row() -> None:
    assert not read(packed=False).is_packed


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_bits": None}, "None bits"),
        ({"num_bits": 0}, "0 bits"),
        ({"num_bits": 10}, "10 bits"),
        ({"num_bits": "5"}, "5 bits"),
        ({"rotation_type": "givens"}, "rotation givens"),
        ({"query_estimator": "layered"}, "estimator layered"),
        ({"query_estimator": None}, "5 bits as releases up to 7.1 wrote"),
        ({"code_dim": 80}, "80 for vectors of 16"),
        ({"code_dim": [16]}, "for vectors of 16"),
    ],
)
def test_unknown_forms_are_unusable(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableSegmentError, match=reason):
        read(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"fast_rotation_signs": None},
        {"fast_rotation_signs": SIGNS[:-1]},
        {"fast_rotation_signs": [256, *SIGNS[1:]]},
        {"fast_rotation_signs": ["1", *SIGNS[1:]]},
        {"fast_rotation_signs": "abcdefgh"},
        {"rotation_type": "matrix"},
        {"rotation_type": "matrix", "rotate_mat_position": 0},
        {"rotation_type": "matrix", "rotate_mat_position": True},
    ],
)
def test_contradicting_metadata_is_corrupt(changes: dict[str, Any]) -> None:
    with pytest.raises(CorruptFileError):
        read(**changes)


def test_codes_fill_whole_bytes() -> None:
    with pytest.raises(CorruptFileError, match="whole bytes"):
        read_rabit_parameters(stored(code_dim=12), 12, PATH)


def test_codes_of_very_many_dimensions_are_unusable() -> None:
    dimension = (1 << 16) + 8
    with pytest.raises(UnusableSegmentError, match="65544"):
        read_rabit_parameters(stored(code_dim=dimension), dimension, PATH)


def test_set_bits_negate_coordinates() -> None:
    factors = sign_factors(bytes(SIGNS), DIMENSION)
    assert factors.dtype == np.float32
    negated = np.argwhere(factors < 0).tolist()
    assert negated == [[0, 0], *([1, i] for i in range(8)), [3, 15]]


def tensor(shape: tuple[int, ...]) -> bytes:
    values = np.arange(np.prod(shape), dtype="<f4")
    data = values.tobytes()
    message = index_pb2.Tensor(data_type=index_pb2.Tensor.FLOAT32, shape=shape, data=data)
    return message.SerializeToString()


def test_a_rotation_matrix_is_read_row_by_row() -> None:
    matrix = read_rotation_matrix(tensor((2, 2)), 2, PATH)
    assert matrix.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("buffer", [b"\xff", b"", tensor((2, 3)), tensor((3, 2)), tensor((9,))])
def test_a_matrix_of_another_shape_is_corrupt(buffer: bytes) -> None:
    with pytest.raises((CorruptFileError, UnusableSegmentError)):
        read_rotation_matrix(buffer, 2, PATH)
