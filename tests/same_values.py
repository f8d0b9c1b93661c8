"""Equality of Arrow arrays, bit for bit, whatever lies below nulls and however it is laid out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def assert_same(found: pa.Array, wanted: pa.Array, path: str = "column") -> None:
    """Fail unless two arrays have one type and the same values.

    NaNs are equal if their bits are, zeros of different sign are not. Bytes below nulls, unused
    items of dictionaries and the way dictionaries are split do not matter.
    """
    assert found.type == wanted.type, f"{path}: {found.type} instead of {wanted.type}"
    assert len(found) == len(wanted), f"{path}: {len(found)} values instead of {len(wanted)}"
    if pa.types.is_null(found.type):  # Arrow's own comparison is wrong for those of null structs
        return
    if pa.types.is_dictionary(found.type):
        found, wanted = found.dictionary_decode(), wanted.dictionary_decode()
    if isinstance(found, pa.ExtensionArray):
        found, wanted = found.storage, wanted.storage
    same_nulls = found.is_null().equals(wanted.is_null())
    assert same_nulls, f"{path}: nulls differ, first at {_first(found.is_null(), wanted.is_null())}"
    if pa.types.is_nested(found.type):
        _assert_same_children(found, wanted, path)
        return
    if pa.types.is_floating(found.type):
        bits = pa.type_for_alias(f"uint{found.type.bit_width}")
        found, wanted = found.view(bits), wanted.view(bits)
    assert found.equals(wanted), f"{path}: values differ, first at {_first(found, wanted)}"


def _assert_same_children(found: pa.Array, wanted: pa.Array, path: str) -> None:
    kind = found.type
    if pa.types.is_map(kind):
        found, wanted = _as_lists(found), _as_lists(wanted)
    if pa.types.is_struct(kind):
        children = zip(kind, found.flatten(), wanted.flatten(), strict=True)  # null below nulls
        for field, found_child, wanted_child in children:
            assert_same(found_child, wanted_child, f"{path}.{field.name}")
        return
    if not pa.types.is_fixed_size_list(kind):
        lengths, wanted_lengths = found.value_lengths(), wanted.value_lengths()
        where = f"first at {_first(lengths, wanted_lengths)}"
        assert lengths.equals(wanted_lengths), f"{path}: lengths of lists differ, {where}"
    assert_same(found.flatten(), wanted.flatten(), f"{path}[]")


def _as_lists(maps: pa.Array) -> pa.Array:
    """Return maps as lists of entries; Arrow's cast knows too few types for this."""
    fields = [maps.type.key_field, maps.type.item_field]
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], fields=fields)
    kind = pa.list_(entries.type)
    own = maps.buffers()[:2]
    return pa.Array.from_buffers(kind, len(maps), own, offset=maps.offset, children=[entries])


def _first(found: pa.Array, wanted: pa.Array) -> str:
    """Name the first place where two arrays without children differ."""
    pairs = zip(found, wanted, strict=True)
    differs = np.array([one.as_py() != other.as_py() for one, other in pairs])
    if not differs.any():
        return "no value that Python tells apart"
    index = int(differs.argmax())
    return f"{index}: {found[index]!r} instead of {wanted[index]!r}"
