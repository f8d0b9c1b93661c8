"""Damaged files raise errors of the library, never others, and never read outside a file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from lance_core.errors import CorruptFileError, LanceError, StoreError
from tests.lance_columns import VERSIONS, lance_file, not_written, open_bytes, sample_columns

pytestmark = pytest.mark.interop
MAX_ROWS = 10_000
TAIL_BYTES = 1500

_files: dict[tuple[str, str, int | None], bytes] = {}


def small_file(name: str, version: str, page_rows: int | None = None) -> bytes:
    key = name, version, page_rows
    if key not in _files:
        column, metadata = sample_columns()[name]
        _files[key] = lance_file(column.slice(0, 600), version, metadata, page_rows)
    return _files[key]


def read_all(data: bytes) -> None:
    """Open a file and read it in every way; any error but the library's fails the test."""
    try:
        reader = open_bytes(data)
        num_rows = reader.num_rows
        if num_rows > MAX_ROWS:  # a damaged count is legal as long as the pages agree
            return
        targets = [reader.target(name) for name in reader.schema.names]
        for array in reader.read(targets, [(0, num_rows)]):
            array.validate()
        if num_rows > 60:
            reader.take(targets, np.array([5, 3, 40, 40, num_rows - 1]))
            reader.read(targets, [(3, 20), (1, 2), (30, num_rows - 1)])
    except LanceError:
        pass


names = st.sampled_from(sorted(set(sample_columns()) - {"binary huge", "list that spans chunks"}))
versions = st.sampled_from(VERSIONS)


@settings(max_examples=150)
@given(name=names, version=versions, data=st.data())
def test_flipped_bits_never_raise_foreign_errors(
    name: str, version: str, data: st.DataObject
) -> None:
    if not_written(name, version):
        return
    page_rows = data.draw(st.sampled_from([None, 137]))
    damaged = bytearray(small_file(name, version, page_rows))
    low = data.draw(st.sampled_from([0, max(0, len(damaged) - TAIL_BYTES)]))
    for position in data.draw(st.lists(st.integers(low, len(damaged) - 1), min_size=1, max_size=3)):
        damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    read_all(bytes(damaged))


@settings(max_examples=60)
@given(name=names, version=versions, cut=st.floats(0, 1, exclude_max=True))
def test_cut_files_are_corrupt(name: str, version: str, cut: float) -> None:
    if not_written(name, version):
        return
    whole = small_file(name, version)
    with pytest.raises(CorruptFileError):
        open_bytes(whole[: int(len(whole) * cut)])


def test_a_wrong_recorded_size_is_reported() -> None:
    data = lance_file(pa.array([1, 2, 3]), "2.2")
    reader = open_bytes(data)
    assert reader.num_rows == 3
    with pytest.raises((CorruptFileError, StoreError)):
        open_bytes(data[:-1])
