"""A model as bytes, which travel to those who build segments with it.

They hold what the two files of a segment say of a model, without any rows.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, InvalidRequestError
from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.build.model_form import (
    as_json,
    centroid_message,
    coding_tensor,
    declaration,
    storage_object,
)
from lance_core.index.vector.build.stored_model import GRAPHS_KEY, ModelSource, read_model

if TYPE_CHECKING:
    from lance_core.index.vector.build.model import VectorModel

_MAGIC = b"lance-serve vector model 1\n"
_LENGTHS = struct.Struct("<QQQ")
_TENSOR_BUFFER = 1
_NAME = "model"


def model_to_bytes(model: VectorModel) -> bytes:
    """Return a model as bytes, see `model_from_bytes`."""
    header = {
        "metadata": {"lance:index": declaration(model), GRAPHS_KEY: _graphs(model)},
        "storage": json.loads(storage_object(model, _TENSOR_BUFFER)),
    }
    tensor = coding_tensor(model)
    pieces = (
        as_json(header).encode(),
        centroid_message(model).SerializeToString(),
        b"" if tensor is None else tensor.SerializeToString(),
    )
    return b"".join([_MAGIC, _LENGTHS.pack(*map(len, pieces)), *pieces])


def model_from_bytes(data: bytes) -> VectorModel:
    """Return the model that `model_to_bytes` made bytes of.

    Raises
    ------
    InvalidRequestError
        They are no such bytes.
    """
    begin = len(_MAGIC) + _LENGTHS.size
    if not data.startswith(_MAGIC) or len(data) < begin:
        raise InvalidRequestError("these bytes are no model; model_to_bytes makes such")
    lengths = _LENGTHS.unpack_from(data, len(_MAGIC))
    if sum(lengths) != len(data) - begin:
        raise InvalidRequestError(
            f"a model has {sum(lengths)} bytes after its lengths, not {len(data) - begin}"
        )
    ivf_at, tensor_at = begin + lengths[0], begin + lengths[0] + lengths[1]
    try:
        return read_model(_source(data[begin:ivf_at], data[ivf_at:tensor_at], data[tensor_at:]))
    except (CorruptFileError, UnusableSegmentError) as error:
        raise InvalidRequestError(f"these bytes are no sound model: {error}") from error


def _source(header: bytes, ivf: bytes, tensor: bytes) -> ModelSource:
    try:
        value = json.loads(header)
        metadata, storage = value["metadata"], value["storage"]
        is_sound = isinstance(storage, dict) and all(
            isinstance(text, str) for text in metadata.values()
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptFileError(_NAME, f"its header cannot be read: {error}") from error
    if not is_sound:
        raise CorruptFileError(_NAME, "its header does not hold texts and an object")

    def buffer(number: int) -> bytes:
        if number != _TENSOR_BUFFER:
            raise CorruptFileError(_NAME, f"there is no buffer {number}")
        return tensor

    return ModelSource(metadata, ivf, storage, buffer, _NAME)


def _graphs(model: VectorModel) -> str:
    if model.graph is None:
        return ""
    params = {
        "m": model.graph.max_connections,
        "ef_construction": model.graph.ef_construction,
        "max_level": model.graph.max_level,
    }
    return as_json([as_json({"params": params})])
