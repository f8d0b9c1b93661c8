"""A search in parts finds what a search in one piece finds, over every kind of index."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyroaring import BitMap

import lance_core
from lance_core.errors import InvalidRequestError
from lance_core.query.deadline import NO_DEADLINE
from lance_core.query.merge import NO_CANDIDATES, merge
from lance_core.query.request import VectorQuery
from lance_core.query.row_filter import RowFilter
from lance_core.query.session import Session
from tests.vector_matrix import KINDS, METRICS, NUM_PARTITIONS, STATES, TableCase, build_table

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from lance_core.index.candidates import Candidates
    from lance_core.query.split_search import SplitSearch

pytestmark = pytest.mark.interop

_STEP = 2


def cases() -> list[TableCase]:
    others = zip(cycle(METRICS), cycle((1, 3)), cycle(STATES), strict=False)
    return [
        TableCase(kind, metric, segments, state, "2.2")
        for kind, (metric, segments, state) in zip(KINDS, others, strict=False)
    ]


def in_parts(split: SplitSearch) -> pa.Table:
    """Search ranges of partitions and single fragments by themselves, and join what they find."""
    if not split.has_parts:
        return split.answer(split.search_whole())
    probes = list(split.first_probes())
    of_segments: list[list[Candidates]] = [[] for _ in probes]
    for place in range(len(split.plan.searches)):
        step = NUM_PARTITIONS if split.is_whole(place) else _STEP
        for start in range(0, len(split.lengths[place]), step):
            chosen = [
                each[place][(each[place] >= start) & (each[place] < start + step)]
                for each in probes
            ]
            for found, more in zip(
                of_segments, split.search_partitions(place, chosen), strict=True
            ):
                found.append(more)
    of_fragments = [NO_CANDIDATES] * split.num_queries
    if split.plan.flat is not None:
        parts = [split.search_fragments(BitMap([each])) for each in split.plan.flat.fragments]
        of_fragments = [merge(each, split.plan.num_ranked) for each in zip(*parts, strict=True)]
    return split.answer(split.join(of_segments, of_fragments))


def batch(vectors: NDArray[np.generic], **options: Any) -> VectorQuery:
    probes = options.pop("nprobes", None)
    return VectorQuery(
        vectors=vectors.astype(np.float32),
        columns=("id",),
        batched=True,
        with_row_id=True,
        min_probes=probes,
        max_probes=probes,
        **options,
    )


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.kind} {case.state}")
def test_parts_joined_are_the_answer(tmp_path: Path, case: TableCase) -> None:
    table = build_table(tmp_path / "t.lance", case)
    dataset = lance_core.open_dataset(str(table.path), session=Session(few_rows=0))
    queries = table.draw(7)
    for number, text in enumerate((None, "u < 300", "u < 5")):
        for refine in (None, 3):
            for probes in (None, 1 + number, NUM_PARTITIONS):
                options = {"k": 10, "filter": text, "nprobes": probes, "refine_factor": refine}
                found = in_parts(dataset.split(batch(queries, **options)))
                single = dataset.run(batch(queries, **options)).table
                assert found.equals(single), (text, refine, probes)
    one = dataset.search(queries[3].astype(np.float32), 10, columns=["id"], with_row_id=True)
    found = in_parts(dataset.split(batch(queries, k=10)))
    own = found.filter(np.equal(found["query_index"].to_numpy(), 3)).drop(["query_index"])
    assert own.equals(one)


def test_without_an_index_fragments_are_the_parts(tmp_path: Path) -> None:
    case = TableCase("IVF_FLAT", "l2", 1, "appended", "2.2")
    table = build_table(tmp_path / "t.lance", case)
    dataset = lance_core.open_dataset(str(table.path))
    request = batch(table.draw(5), k=20, use_index=False)
    split = dataset.split(request)
    assert not split.plan.searches
    assert in_parts(split).equals(dataset.run(request).table)


def test_rows_judged_elsewhere_are_the_rows_that_pass(tmp_path: Path) -> None:
    case = TableCase("IVF_PQ", "l2", 1, "deleted", "2.2")
    table = build_table(tmp_path / "t.lance", case)
    text = "u < 300"
    judge = lance_core.open_dataset(str(table.path))
    fragments = list(judge.snapshot.fragments_by_id)
    passing = RowFilter(judge.session, judge.snapshot, text, NO_DEADLINE).passing(
        fragments, NO_DEADLINE
    )
    only = {each: passing[each] for each in fragments}
    # a lie that shows who was asked
    only[fragments[0]] = type(passing[fragments[0]])(np.zeros_like(passing[fragments[0]].words), 0)
    told = lance_core.open_dataset(str(table.path), session=Session(few_rows=0))
    RowFilter(told.session, told.snapshot, text, NO_DEADLINE).keep(only)
    request = batch(table.draw(5), k=50, filter=text)
    found = told.run(request).table
    assert found.num_rows > 0
    assert (found["_rowid"].to_numpy() >> 32 != fragments[0]).all()
    assert in_parts(told.split(request)).equals(found)


def test_what_cannot_be_had_in_parts_is_refused(tmp_path: Path) -> None:
    case = TableCase("IVF_FLAT", "l2", 1, "appended", "2.2")
    table = build_table(tmp_path / "t.lance", case)
    dataset = lance_core.open_dataset(str(table.path))
    for options in ({"lower_bound": 1.0}, {"offset": 2}, {"filter": "u < 9", "prefilter": False}):
        with pytest.raises(InvalidRequestError, match="one piece"):
            dataset.split(batch(table.draw(1), **options))
