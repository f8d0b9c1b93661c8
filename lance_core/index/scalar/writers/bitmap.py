"""Writing a BITMAP or a LABEL_LIST: for each distinct value or element the set of its rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.index.scalar.tree_map import encode_tree_map
from lance_core.index.scalar.writers.growing_set import GrowingSet
from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.index.scalar.writers.sets import SetForm, key_sets
from lance_core.index.scalar.writers.sort import sort_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lance_core.file.writer import LanceFileWriter
    from lance_core.index.scalar.fragment_rows import FragmentRows
    from lance_core.index.scalar.writers.sets import KeySets
    from lance_core.index.segment_files import SegmentFiles

_FILE = "bitmap_page_lookup.lance"
BITMAP_FORM = SetForm(has_lengths=True, encode=encode_tree_map)
"""How BITMAP and LABEL_LIST serialize sets."""


def write_bitmap(
    rows: Iterable[IndexedRows], kind: pa.DataType, files: SegmentFiles, memory_bytes: int
) -> None:
    """Write the file of a BITMAP.

    Parameters
    ----------
    rows
        In any order.
    kind
        Type of the values.
    files
        Takes the file.
    memory_bytes
        As `sort_rows` takes it.

    Notes
    -----
    Scalar index page, section 3.
    """
    write_bitmap_sets(key_sets(sort_rows(rows, memory_bytes), BITMAP_FORM), kind, files)


def write_label_list(
    rows: Iterable[IndexedRows], kind: pa.DataType, files: SegmentFiles, memory_bytes: int
) -> None:
    """Write the file of a LABEL_LIST; parameters as `write_bitmap`, of a type of lists.

    Notes
    -----
    Scalar index page, section 4: a null element is a key, a row without a list has none.
    """
    nulls = GrowingSet()
    elements = sort_rows(_elements(rows, nulls), memory_bytes)
    write_label_sets(key_sets(elements, BITMAP_FORM), kind.value_type, files, lambda: nulls.rows)


def write_bitmap_sets(sets: Iterable[KeySets], kind: pa.DataType, files: SegmentFiles) -> None:
    """Write the file of a BITMAP whose sets, in `BITMAP_FORM`, are made already."""
    schema = _schema(kind)
    with files.create(_FILE, schema) as writer:
        _write_sets(sets, schema, writer)


def write_label_sets(
    sets: Iterable[KeySets],
    kind: pa.DataType,
    files: SegmentFiles,
    null_rows: Callable[[], FragmentRows | None],
) -> None:
    """Write the file of a LABEL_LIST whose sets, in `BITMAP_FORM`, are made already.

    Parameters
    ----------
    sets
        Labels, and the rows of each.
    kind
        Type of the labels.
    files
        Takes the file.
    null_rows
        Returns the rows without a list, called behind the last of ``sets``; None = not known.
    """
    schema = _schema(kind)
    with files.create(_FILE, schema) as writer:
        _write_sets(sets, schema, writer)
        nulls = null_rows()
        if nulls is not None:
            number = writer.add_global_buffer(encode_tree_map(nulls))
            writer.add_schema_metadata("lance:label_list_nulls", str(number))


def _schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("keys", kind), ("bitmaps", pa.binary())])


def _write_sets(sets: Iterable[KeySets], schema: pa.Schema, writer: LanceFileWriter) -> None:
    num_sets = 0
    for found in sets:
        num_sets += len(found.keys)
        writer.write_batch(pa.RecordBatch.from_arrays([found.keys, found.sets], schema=schema))
    stats = json.dumps({"num_bitmaps": num_sets}, separators=(",", ":"))
    writer.add_schema_metadata("lance:index_stats", stats)


def _elements(rows: Iterable[IndexedRows], nulls: GrowingSet) -> Iterator[IndexedRows]:
    """Yield the elements of lists, each with the name of its row; rows without a list are noted."""
    for piece in rows:
        null_names, lists = piece.split_nulls()  # a null list may have elements that do not count
        nulls.add(null_names)
        parents = np.asarray(pc.list_parent_indices(lists.values), np.int64)
        yield IndexedRows(pc.list_flatten(lists.values), lists.names[parents])
