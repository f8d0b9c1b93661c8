"""What workers do for a batch of queries; every function answers for one item of a stage.

A block of queries is an item where tasks share the queries. Where they share the index, a piece of
the index or of the rows without one is an item, and its finds are joined block by block.
"""

from __future__ import annotations

import io
import json
import uuid
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_core.errors import CorruptFileError
from lance_core.file.arguments import checked_number
from lance_core.index.candidates import Candidates
from lance_core.query.answer_shape import QUERY_INDEX_FIELD
from lance_core.query.merge import NO_CANDIDATES, merge
from lance_core.query.request import VectorQuery
from pipeline.search_filter import judge_rows, keep_judged
from pipeline.search_output import named_answers
from pipeline.search_queries import load_block
from pipeline.worker import dataset_at, report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lance_core.dataset import Dataset
    from lance_core.query.split_search import SplitSearch
    from pipeline.journal import Journal
    from pipeline.search_output import AnswerOutput
    from pipeline.search_queries import QueryBlock

FILTERED, PROBED, FOUND = "filtered.json", "probed.json", "found.json"
"""Objects of the journal in which the driver lists what a stage has left for the next one."""
FOLDERS = ("queries", "filter", "probes", "found")
"""Folders of the journal that nobody reads when a job is done."""


@dataclass(frozen=True, slots=True)
class BatchSearch:
    """What to search for, by every query of a batch.

    Parameters
    ----------
    column
        Vector column; None = the only one of the queries' dimension.
    k
        Rows wanted per query.
    nprobes
        Partitions to search per segment; None = chosen by how close the centroids are.
    refine_factor
        Re-rank ``k * refine_factor`` candidates by exact distance; None = do not.
    metric, filter, ef
        See `lance_core.dataset.DatasetReads.search`.
    columns
        Columns of the answers; ``_distance`` is added.

    Raises
    ------
    InvalidRequestError
        ``k`` is less than 1.
    """

    column: str | None = None
    k: int = 10
    nprobes: int | None = 20
    refine_factor: int | None = 1
    metric: str | None = None
    filter: str | None = None
    ef: int | None = None
    columns: tuple[str, ...] = ("_rowid",)

    def __post_init__(self) -> None:
        checked_number("k", self.k, 1)

    def request(self, vectors: NDArray[np.float32]) -> VectorQuery:
        """Return the queries of a block, shape ``(n, d)``; one query where rows hold lists."""
        return VectorQuery(
            vectors=vectors,
            k=self.k,
            column=self.column,
            columns=self.columns,
            metric=self.metric,
            min_probes=self.nprobes,
            max_probes=self.nprobes,
            refine_factor=self.refine_factor,
            filter=self.filter,
            ef=self.ef,
            batched=True,
        )


@dataclass(frozen=True, slots=True)
class SearchTask:
    """What all items of a job share; small, as it is sent along with each.

    Parameters
    ----------
    uri, version, storage_options
        The dataset; the options as pairs.
    journal
        Holds queries, and what workers leave for one another.
    search
        What to search for.
    output
        Where the answers go.
    """

    uri: str
    version: int
    storage_options: tuple[tuple[str, str], ...]
    journal: Journal
    search: BatchSearch
    output: AnswerOutput

    def dataset(self) -> Dataset:
        """Open the dataset, its rows judged if there is a filter and that was done."""
        dataset = dataset_at(self.uri, self.version, dict(self.storage_options) or None)
        if self.search.filter is not None:
            names = _listed(self.journal, FILTERED)
            keep_judged(self.journal, dataset, self.search.filter, names)
        return dataset


@dataclass(frozen=True, slots=True)
class _Finds:
    """Where the finds of a piece are: a folder, the blocks that it has some of, what they are."""

    folder: str
    blocks: list[int]
    is_exact: bool


def judge_fragments(task: SearchTask, item: bytes) -> bytes:
    """Judge the rows of some fragments, a JSON list of ids; return the name of what is kept."""
    text = task.search.filter
    dataset = dataset_at(task.uri, task.version, dict(task.storage_options) or None)
    return judge_rows(task.journal, dataset, str(text), json.loads(item)).encode()


def answer_block(task: SearchTask, item: bytes) -> bytes:
    """Answer a block of queries, given its number, over the whole dataset."""
    number = int(item)
    block = load_block(task.journal, number)
    found = task.dataset().run(task.search.request(block.vectors)).table
    return task.output.write(number, named_answers(found, block.ids))


def answer_lists(task: SearchTask, item: bytes) -> bytes:
    """Answer a block of queries where rows hold lists of vectors, so that each is one, too."""
    number = int(item)
    block, dataset = load_block(task.journal, number), task.dataset()
    answers = []
    for place, vectors in enumerate(block.each()):
        found = dataset.run(task.search.request(vectors)).table
        owner = pa.array(np.full(len(found), place, np.int32))
        answers.append(found.add_column(0, QUERY_INDEX_FIELD, owner))
        report(place + 1)
    return task.output.write(number, named_answers(pa.concat_tables(answers), block.ids))


def probe_block(task: SearchTask, item: bytes) -> bytes:
    """Find out which partitions the queries of a block probe; return the folder of what is kept."""
    split = _split(task, load_block(task.journal, int(item)))
    probes = list(split.first_probes())
    folder = uuid.uuid4().hex
    for place, lengths in enumerate(split.lengths):
        own = [each[place] for each in probes]
        chosen = np.concatenate(own)
        arrays: dict[str, NDArray[np.generic]] = {
            "lengths": np.array([len(each) for each in own], np.int32),
            "partitions": chosen.astype(np.int32),
            "counts": np.bincount(chosen, minlength=len(lengths)).astype(np.int32),
        }
        task.journal.put(_probes_name(folder, place), _packed(arrays))
    return folder.encode()


def probe_counts(journal: Journal, folders: Sequence[str], place: int) -> NDArray[np.int64]:
    """Return how many queries probe each partition of a segment, shape ``(P,)``."""
    names = [_probes_name(folder, place) for folder in folders]
    total: NDArray[np.int64] = np.sum(
        [_arrays(journal, name)["counts"].astype(np.int64) for name in names], axis=0
    )
    return total


def search_piece(task: SearchTask, item: bytes) -> bytes:
    """Search a piece of the index, or of the rows without one, by all queries.

    Parameters
    ----------
    item
        JSON: ``place``, ``start`` and ``stop`` of partitions, or ``fragments``.

    Returns
    -------
    bytes
        JSON: where the finds are.
    """
    piece = json.loads(item)
    folder, blocks = uuid.uuid4().hex, []
    num_done = 0
    for number, probes in enumerate(_listed(task.journal, PROBED)):
        if "fragments" in piece:
            split = _split(task, load_block(task.journal, number))
            found = split.search_fragments(BitMap(piece["fragments"]))
            num_done += split.num_queries
        else:
            found = _search_partitions(task, number, probes, piece)
            num_done += sum(len(each) > 0 for each in found)
        if any(len(each) > 0 for each in found):
            task.journal.put(_found_name(folder, number), _packed_finds(found))
            blocks.append(number)
        report(num_done)
    return json.dumps(asdict(_Finds(folder, blocks, "fragments" in piece))).encode()


def join_block(task: SearchTask, item: bytes) -> bytes:
    """Answer a block of queries by what all pieces have found for it."""
    number = int(item)
    block = load_block(task.journal, number)
    split = _split(task, block)
    num_queries, num_ranked = split.num_queries, split.plan.num_ranked
    of_segments: list[list[Candidates]] = [[] for _ in range(num_queries)]
    of_fragments = [NO_CANDIDATES] * num_queries
    for told in _listed_finds(task.journal):
        if number not in told.blocks:
            continue
        finds = _unpacked_finds(_arrays(task.journal, _found_name(told.folder, number)))
        if told.is_exact:
            pairs = zip(of_fragments, finds, strict=True)
            of_fragments = [merge(pair, num_ranked) for pair in pairs]
        else:
            for known, more in zip(of_segments, finds, strict=True):
                known.append(more)
    answer = split.answer(split.join(of_segments, of_fragments))
    return task.output.write(number, named_answers(answer, block.ids))


def _search_partitions(
    task: SearchTask, number: int, probes: str, piece: dict[str, int]
) -> list[Candidates]:
    place = piece["place"]
    arrays = _arrays(task.journal, _probes_name(probes, place))
    lengths = arrays["lengths"].astype(np.int64)
    partitions = arrays["partitions"].astype(np.int64)
    inside = (partitions >= piece["start"]) & (partitions < piece["stop"])
    if not inside.any():
        return []
    owners = np.repeat(np.arange(len(lengths)), lengths)[inside]
    counts = np.bincount(owners, minlength=len(lengths))
    chosen = np.split(partitions[inside], np.cumsum(counts)[:-1])
    return _split(task, load_block(task.journal, number)).search_partitions(place, chosen)


def _split(task: SearchTask, block: QueryBlock) -> SplitSearch:
    return task.dataset().split(task.search.request(block.vectors))


def _probes_name(folder: str, place: int) -> str:
    return f"probes/{folder}/{place:05d}.npz"


def _found_name(folder: str, block: int) -> str:
    return f"found/{folder}/{block:08d}.npz"


def _packed_finds(found: Sequence[Candidates]) -> bytes:
    return _packed(
        {
            "lengths": np.array([len(each) for each in found], np.int32),
            "distances": np.concatenate([each.distances for each in found]),
            "row_ids": np.concatenate([each.row_ids for each in found]),
        }
    )


def _unpacked_finds(arrays: dict[str, NDArray[np.generic]]) -> list[Candidates]:
    ends = np.cumsum(arrays["lengths"])[:-1]
    distances = np.split(arrays["distances"].astype(np.float32), ends)
    row_ids = np.split(arrays["row_ids"].astype(np.uint64), ends)
    return [Candidates(*each) for each in zip(distances, row_ids, strict=True)]


def _packed(arrays: dict[str, NDArray[np.generic]]) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, allow_pickle=False, **arrays)
    return sink.getvalue()


def _arrays(journal: Journal, name: str) -> dict[str, NDArray[np.generic]]:
    data = journal.get(name)
    if data is None:
        raise CorruptFileError(name, "is gone")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)


@lru_cache(maxsize=8)
def _listed(journal: Journal, name: str) -> tuple[str, ...]:
    data = journal.get(name)
    if data is None:
        raise CorruptFileError(name, "is gone")
    return tuple(json.loads(data))


@lru_cache(maxsize=2)
def _listed_finds(journal: Journal) -> list[_Finds]:
    return [_Finds(**json.loads(each)) for each in _listed(journal, FOUND)]
