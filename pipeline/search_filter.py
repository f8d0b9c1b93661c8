"""The filter of a batch of queries: judged once, fragment by fragment, for all workers."""

from __future__ import annotations

import io
import json
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.ids import FragmentId
from lance_core.query.deadline import NO_DEADLINE
from lance_core.query.row_filter import RowFilter
from lance_core.query.row_masks import RowMask
from lance_core.row_set import bitmap_from_bytes, bitmap_of, to_ordinals, words_of_bitmap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.dataset import Dataset
    from pipeline.journal import Journal

_FRAGMENT, _ROWS = "fragment_id", "rows"


def judge_rows(journal: Journal, dataset: Dataset, text: str, fragment_ids: list[int]) -> str:
    """Judge the rows of some fragments, and keep which pass.

    Returns
    -------
    str
        Name of the object that holds them, new at each attempt.
    """
    row_filter = RowFilter(dataset.session, dataset.snapshot, text, NO_DEADLINE)
    ids = [FragmentId(each) for each in fragment_ids]
    passing = row_filter.passing(ids, NO_DEADLINE)
    bitmaps = [bitmap_of(to_ordinals(passing[each].words)).serialize() for each in ids]
    batch = pa.record_batch(
        {_FRAGMENT: pa.array(ids, pa.uint32()), _ROWS: pa.array(bitmaps, pa.binary())}
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    name = f"filter/{uuid.uuid4().hex}.arrow"
    journal.put(name, sink.getvalue())
    return name


def keep_judged(journal: Journal, dataset: Dataset, text: str, names: tuple[str, ...]) -> None:
    """Let searches of a dataset find judged which rows pass its filter.

    Parameters
    ----------
    names
        Objects of `judge_rows`, together of all fragments.
    """
    sizes = {each.id: each.physical_rows for each in dataset.snapshot.fragments}
    masks = _masks(journal, names, json.dumps(sizes))
    RowFilter(dataset.session, dataset.snapshot, text, NO_DEADLINE).keep(masks)


@lru_cache(maxsize=2)
def _masks(
    journal: Journal, names: tuple[str, ...], sizes_text: str
) -> Mapping[FragmentId, RowMask]:
    sizes = {int(key): rows for key, rows in json.loads(sizes_text).items()}
    masks: dict[FragmentId, RowMask] = {}
    for name in names:
        data = journal.get(name)
        if data is None:
            raise CorruptFileError(name, "is gone")
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        for fragment_id, rows in zip(*(column.to_pylist() for column in batch), strict=True):
            bitmap = bitmap_from_bytes(rows, name)
            words = words_of_bitmap(bitmap, sizes[fragment_id])
            masks[FragmentId(fragment_id)] = RowMask(words, len(bitmap))
    return masks
