"""A model that has learnt nothing yet: what the manifest says of an index without files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.index.vector.build.model import (
    FlatCoding,
    PqCoding,
    RabitCoding,
    SqCoding,
    VectorModel,
)

if TYPE_CHECKING:
    from lance_core.index.vector.build.model import Coding
    from lance_core.index.vector.build.parameters import VectorParameters


def untrained(parameters: VectorParameters) -> VectorModel:
    """Return a model without partitions, whose codes mean nothing."""
    return VectorModel(
        parameters.metric,
        parameters.column.value_type,
        np.zeros((0, parameters.column.dimension), np.float32),
        _coding(parameters),
        parameters.graph,
    )


def _coding(parameters: VectorParameters) -> Coding:
    match parameters.quantiser:
        case "PQ":
            shape = (parameters.num_sub_vectors, 1 << parameters.num_bits, 1)
            return PqCoding(parameters.num_bits, np.zeros(shape, np.float32))
        case "SQ":
            return SqCoding(0, 0)
        case "RQ":
            is_fast = parameters.rotation_type == "fast"
            return RabitCoding(
                parameters.num_bits, b"" if is_fast else np.zeros((0, 0), np.float32)
            )
        case _:
            return FlatCoding()
