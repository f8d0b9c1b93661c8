"""Writing an NGRAM: for each trigram the rows whose text has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.index.scalar.writers.indexed_rows import IndexedRows
from lance_core.index.scalar.writers.sets import SetForm, key_sets
from lance_core.index.scalar.writers.sort import sort_rows
from lance_core.index.scalar.writers.text_trigrams import trigrams_of_texts
from lance_core.table.treemap import encode_treemap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lance_core.index.scalar.writers.sets import KeySets
    from lance_core.index.segment_files import SegmentFiles

_FILE = "ngram_postings.lance"
_NULL_TOKEN = 0
_BYTES_AT_ONCE = 1 << 20
"""Of texts, whose trigrams take some fifty times as much while they are found."""

NGRAM_FORM = SetForm(has_lengths=False, encode=encode_treemap)
"""How NGRAM serializes sets."""

_SCHEMA = pa.schema(
    [
        ("tokens", pa.uint32()),
        pa.field(
            "posting_list",
            pa.binary(),
            nullable=False,
            metadata={"lance-encoding:compression": "none"},
        ),
    ]
)


def write_ngram(rows: Iterable[IndexedRows], files: SegmentFiles, memory_bytes: int) -> None:
    """Write the file of an NGRAM.

    Parameters
    ----------
    rows
        Texts, in any order.
    files
        Takes the file.
    memory_bytes
        As `sort_rows` takes it.

    Notes
    -----
    Scalar index page, section 5: token 0 has the rows without a text.
    """
    write_ngram_sets(key_sets(sort_rows(_tokens(rows), memory_bytes), NGRAM_FORM), files)


def write_ngram_sets(sets: Iterable[KeySets], files: SegmentFiles) -> None:
    """Write the file of an NGRAM whose sets, in `NGRAM_FORM`, are made already."""
    with files.create(_FILE, _SCHEMA) as writer:
        for found in sets:
            columns = [found.keys, found.sets]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))


def _tokens(rows: Iterable[IndexedRows]) -> Iterator[IndexedRows]:
    """Yield the trigrams of texts, each with the name of its row."""
    for piece in (part for each in rows for part in each.cut(_BYTES_AT_ONCE)):
        nulls, texts = piece.split_nulls()
        places, tokens = trigrams_of_texts(texts.values)
        yield IndexedRows(pa.array(np.full(len(nulls), _NULL_TOKEN, np.uint32)), nulls)
        yield IndexedRows(pa.array(tokens), texts.names[places])
