"""The encoder of a model."""

from __future__ import annotations

from lance_core.index.vector.build.encode import Encoder, FlatEncoder, ScalarEncoder
from lance_core.index.vector.build.encode_pq import ProductEncoder
from lance_core.index.vector.build.encode_rabit import RabitEncoder
from lance_core.index.vector.build.model import PqCoding, RabitCoding, SqCoding, VectorModel
from lance_core.index.vector.build.model_form import numpy_type


def encoder_of(model: VectorModel) -> Encoder:
    """Return what codes vectors by a model."""
    match model.coding:
        case PqCoding() as coding:
            return ProductEncoder(model, coding)
        case SqCoding() as coding:
            return ScalarEncoder(model.dimension, coding)
        case RabitCoding() as coding:
            return RabitEncoder(model, coding)
        case _:
            return FlatEncoder(model.dimension, numpy_type(model))
