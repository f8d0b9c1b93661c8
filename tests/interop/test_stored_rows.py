"""Coded rows of segments that pylance built, one after the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pytest

from lance_core.index.registry import UnusableSegmentError
from lance_core.index.vector.build.stored_rows import CodedRows, stored_rows
from tests.opened_segment import build_index, open_segment
from tests.rabit_codes import packed_by_definition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lance_core.index.vector.segment import VectorSegment

pytestmark = pytest.mark.interop

KINDS: Sequence[tuple[str, dict[str, Any]]] = [
    ("IVF_FLAT", {}),
    ("IVF_SQ", {}),
    ("IVF_PQ", {"num_sub_vectors": 4}),
    ("IVF_PQ", {"num_sub_vectors": 4, "num_bits": 4}),
    ("IVF_PQ", {"num_sub_vectors": 4, "skip_transpose": True}),
    ("IVF_RQ", {"num_bits": 1}),
    ("IVF_RQ", {"num_bits": 4}),
    ("IVF_RQ", {"num_bits": 3, "skip_transpose": True}),
    ("IVF_HNSW_SQ", {}),
]


def stored(path: Path) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Return the columns as pylance reads them, and the quantiser's object."""
    (folder,) = (path / "_indices").iterdir()
    reader = lance.file.LanceFileReader(str(folder / "auxiliary.idx"))
    table = reader.read_all().to_table()
    columns = {
        name: np.array(table[name].to_pylist(), np.uint64 if name == "_rowid" else None)
        for name in table.column_names
    }
    return columns, json.loads(json.loads(table.schema.metadata[b"storage_metadata"])[0])


def expected_codes(
    segment: VectorSegment, codes: np.ndarray[Any, Any], layout: dict[str, Any]
) -> np.ndarray[Any, Any]:
    """Undo the layout of the first column by its definition, partition by partition."""
    rows = np.empty_like(codes)
    for partition in range(segment.num_partitions):
        start, stop = segment.row_range(partition)
        part = codes[start:stop]
        if layout.get("transposed") is True:
            rows[start:stop] = part.ravel().reshape(codes.shape[1], -1).T
        else:
            rows[start:stop] = part
    return rows


def joined(parts: Sequence[CodedRows]) -> CodedRows:
    return CodedRows(
        np.concatenate([part.row_ids for part in parts]),
        np.concatenate([part.partitions for part in parts]),
        {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns},
    )


def check_rows(rows: CodedRows, tmp_path: Path, segment: VectorSegment) -> None:
    columns, layout = stored(tmp_path)
    np.testing.assert_array_equal(rows.row_ids, columns.pop("_rowid"))
    lengths = [np.subtract(*segment.row_range(p)[::-1]) for p in range(segment.num_partitions)]
    np.testing.assert_array_equal(rows.partitions, np.repeat(np.arange(len(lengths)), lengths))
    assert set(rows.columns) == set(columns)
    first = next(iter(rows.columns))
    if layout.get("packed") is True:
        for partition in range(segment.num_partitions):
            part = slice(*segment.row_range(partition))
            packed = packed_by_definition(rows.columns[first][part])
            np.testing.assert_array_equal(packed, columns[first][part].ravel())
    else:
        expected = expected_codes(segment, columns[first], layout)
        np.testing.assert_array_equal(rows.columns[first], expected)
    for name in set(columns) - {first}:
        np.testing.assert_array_equal(rows.columns[name], columns[name])


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_coded_rows_come_row_after_row_whatever_the_layout(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    built = build_index(tmp_path, kind, "l2", options=options)
    segment = open_segment(built.store()).segment
    reads = [list(stored_rows(segment, read_bytes)) for read_bytes in (1, 5_000, 1 << 24)]
    assert len(reads[0]) >= len(reads[1]) > len(reads[2]) == 1
    for parts in reads:
        check_rows(joined(parts), tmp_path, segment)


def test_kept_rows_bear_their_new_names(tmp_path: Path) -> None:
    built = build_index(tmp_path, "IVF_FLAT", "l2", num_rows=100)
    rows = joined(list(stored_rows(open_segment(built.store()).segment)))
    kept = rows.kept(rows.row_ids + np.uint64(7), rows.partitions == 2)
    assert 0 < len(kept) < len(rows)
    assert set(kept.partitions.tolist()) == {2}
    offsets = (kept.row_ids - np.uint64(7)).astype(np.int64)
    fragment, offset = offsets >> 32, offsets & 0xFFFF_FFFF
    np.testing.assert_array_equal(kept.columns["flat"], built.vectors[fragment * 50 + offset])
    everything = rows.kept(rows.row_ids, np.ones(len(rows), np.bool_))
    assert everything.columns is rows.columns


def test_codes_for_residual_queries_are_not_those_of_today(tmp_path: Path) -> None:
    built = build_index(tmp_path, "IVF_RQ", "l2", num_rows=300, options={"num_bits": 1})
    segment = open_segment(built.store()).segment
    codes: Any = segment.quantizer
    object.__setattr__(codes.codes, "is_residual", True)
    with pytest.raises(UnusableSegmentError, match=r"7\.1"):
        list(stored_rows(segment))
