"""Leaves without values, or with one value only -> constant pages (file format, section 4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lance_core.encodings.choose_strings import HUGE_BYTES
from lance_core.encodings.encode_levels import LevelStream, layer_numbers
from lance_core.encodings.levels import Layer
from lance_core.encodings.values import FixedWidth, Variable
from lance_core.encodings.version import FileVersion
from lance_core.proto import encodings21_pb2 as pb

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lance_core.encodings.levels import Levels
    from lance_core.encodings.shred import Leaf
    from lance_core.encodings.values import Values

    Buffers = tuple[NDArray[np.uint8], ...]

_MAX_INLINE_BYTES = 32
_NONE = np.empty(0, np.uint8)


def has_no_value(leaf: Leaf) -> bool:
    """Whether all visible values are null, or none is visible."""
    validity = leaf.values.validity
    return leaf.values.num_values == 0 or (validity is not None and not bool(validity.any()))


def has_no_bytes(values: Values) -> bool:
    """Whether the type of the values is one of no bytes: binary of the fixed size 0."""
    return isinstance(values, FixedWidth) and values.bits == 0


def encode_all_null(leaf: Leaf, version: FileVersion) -> tuple[Buffers, pb.PageLayout]:
    """Encode a page that ``has_no_value``: its levels, or nothing where each row is a null."""
    layout = pb.ConstantLayout(layers=layer_numbers(leaf.layers))
    if _says_nothing(leaf):
        return (), pb.PageLayout(constant_layout=layout)
    if version is not FileVersion.V2_2:
        return _raw_levels(leaf), pb.PageLayout(constant_layout=layout)
    bounds = np.array([0, leaf.num_levels], np.int64)
    repetition = LevelStream.of(leaf.repetition, bounds, version)
    definition = LevelStream.of(leaf.definition, bounds, version)
    if repetition is not None:
        layout.rep_compression.CopyFrom(repetition.encoding.message())
        layout.num_rep_values = leaf.num_levels
    if definition is not None:
        layout.def_compression.CopyFrom(definition.encoding.message())
        layout.num_def_values = leaf.num_levels
    streams = (_NONE if s is None else s.buffer.data for s in (repetition, definition))
    return tuple(streams), pb.PageLayout(constant_layout=layout)


def _says_nothing(leaf: Leaf) -> bool:
    """Whether each row is a null of the leaf; pylance wants the levels of nulls inside structs."""
    return leaf.layers.layers == (Layer.NULLABLE_ITEM,)


def _raw_levels(leaf: Leaf) -> Buffers:
    """Return the levels as they are, nothing where there are none."""
    if leaf.repetition is None and leaf.definition is None:
        return ()
    return _raw(leaf.repetition), _raw(leaf.definition)


def _raw(levels: Levels | None) -> NDArray[np.uint8]:
    return _NONE if levels is None else levels.view(np.uint8)


def encode_one_value(
    leaf: Leaf, version: FileVersion, length_bits: int
) -> tuple[Buffers, pb.PageLayout] | None:
    """Encode a page whose values are all equal, or return None where it is none.

    Only 2.2 pages, and with levels only values of no bytes, which have no other form: levels
    beside a value have to be raw, which takes more than they and the value take in chunks.

    Parameters
    ----------
    leaf
        At least one value.
    version
        Of the file.
    length_bits
        Width of the offsets of strings, 32 or 64.
    """
    if version is not FileVersion.V2_2:
        return None
    if has_no_bytes(leaf.values):
        layout = pb.ConstantLayout(layers=layer_numbers(leaf.layers), inline_value=b"")
        return _raw_levels(leaf), pb.PageLayout(constant_layout=layout)
    if leaf.repetition is not None or leaf.definition is not None:
        return None
    value = _only_value(leaf.values)
    if value is None or _should_be_compressed(value, leaf.values.num_values):
        return None
    layout = pb.ConstantLayout(layers=layer_numbers(leaf.layers))
    buffers: Buffers = ()
    if isinstance(value, Variable):
        offsets = np.array([0, len(value.data)], f"<i{length_bits // 8}").view(np.uint8)
        buffers = (_scalar(offsets, value.data),)
    elif len(value.data) > _MAX_INLINE_BYTES:
        buffers = (_scalar(value.data),)
    else:
        layout.inline_value = value.data.tobytes()
    return buffers, pb.PageLayout(constant_layout=layout)


def _should_be_compressed(value: FixedWidth | Variable, num_values: int) -> bool:
    """Whether the only row is a string so large that full-zip pages compress it."""
    return isinstance(value, Variable) and num_values == 1 and len(value.data) > HUGE_BYTES


def _only_value(values: Values) -> FixedWidth | Variable | None:
    """Return the first value if all others are equal to it."""
    if not isinstance(values, FixedWidth | Variable):
        return None
    first = values.slice(0, 1)
    if values.num_values == 1:
        return first
    if isinstance(values, FixedWidth):
        table = values.data.reshape(values.num_values, values.value_bytes)
    else:
        sizes = np.diff(values.offsets)
        if not bool((sizes == sizes[0]).all()):
            return None
        table = values.data[values.offsets[0] : values.offsets[-1]].reshape(len(sizes), sizes[0])
    few = table[:: max(len(table) // 16, 1)]
    if not bool((few == first.data).all()):  # most pages part here, without a look at all
        return None
    return first if bool((table == first.data).all()) else None


def _scalar(*buffers: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return count and lengths of Arrow buffers, then the buffers."""
    header = np.array([len(buffers), *(len(buffer) for buffer in buffers)], "<u4")
    return np.concatenate([header.view(np.uint8), *buffers])
