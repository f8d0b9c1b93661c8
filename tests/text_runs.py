"""Random text queries over tables in all states, each of which must rank rows as pylance does.

``python -m tests.text_runs --count 2000`` runs them over the example texts and generated ones;
``TEXTS_WORDNET`` names a larger file of texts. Where the two sides differ, scores are computed by
the formulas over all rows: pylance may be wrong, we may not. Needs pylance.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

import lance_core
from tests.pairwise import pairwise
from tests.text_asks import KINDS, AskWriter, query_of_pylance
from tests.text_judge import Judge
from tests.text_tables import BLOCK_SIZES, NUM_SEGMENTS, SOURCES, STATES, TextCase, build_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from tests.text_asks import Ask
    from tests.text_tables import TextTable

TOLERANCE = 1e-5
NEAR_ZERO = 1e-6
"""Scores below are differences of larger ones, which float32 rounds."""
_MOST_ROWS = 200_000


@dataclass(slots=True)
class Outcome:
    """What came of some queries: those that we answered wrongly, and counts of the others.

    ``peer_wrong`` counts by kind those that pylance answered wrongly; of ``num_tied`` it is not
    told, as rows with the same score take the last places before a filter.
    """

    num_queries: int = 0
    num_tied: int = 0
    peer_wrong: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add what came of other queries."""
        self.num_queries += other.num_queries
        self.num_tied += other.num_tied
        self.peer_wrong += other.peer_wrong
        self.wrong += other.wrong


def cases(num_rows: int) -> list[TextCase]:
    """Return tables in which every two choices occur together."""
    choices = {
        "source": list(SOURCES),
        "block size": BLOCK_SIZES,
        "segments": NUM_SEGMENTS,
        "state": STATES,
    }
    return [TextCase(*one, num_rows) for one in pairwise(choices)]  # type: ignore[arg-type, call-arg]  # in this order


def few_cases(num_rows: int) -> list[TextCase]:
    """Return a table for each source of texts."""
    return [
        TextCase(
            source,
            BLOCK_SIZES[number % 2],
            NUM_SEGMENTS[number // 2 % 2],
            STATES[number % len(STATES)],
            num_rows,
        )
        for number, source in enumerate(SOURCES)
    ]


def run_case(path: Path, case: TextCase, count: int, seed: int) -> Outcome:
    """Build a table and compare the answers to some queries."""
    table = build_table(path, case)
    texts = [text for text in table.rows["t"].to_pylist() if text is not None]
    generator = np.random.default_rng(seed)
    writer = AskWriter(generator.choice(texts, min(len(texts), 2_000)).tolist(), generator)
    first = int(generator.integers(len(KINDS)))
    asks = (writer.ask(KINDS[(first + number) % len(KINDS)]) for number in range(count))
    return compare(table, asks)


def compare(table: TextTable, asks: Iterable[Ask]) -> Outcome:
    """Ask both sides; where they differ, tell which is wrong."""
    sides = _Sides(table)
    outcome = Outcome()
    for ask in asks:
        outcome.num_queries += 1
        found, expected = sides.ours(ask), sides.theirs(ask)
        if _same(found, expected):
            continue
        if not ask.prefilter and sides.is_tied(ask):
            outcome.num_tied += 1
            continue
        true = sides.judge.scores(ask)
        if _same(found, true):
            outcome.peer_wrong[ask.kind] += 1
            continue
        outcome.wrong.append(
            f"{table.case}\n  {ask}\n  ours {_told(found)}\n  pylance {_told(expected)}"
            f"\n  true {_told(true)}"
        )
    return outcome


class _Sides:
    def __init__(self, table: TextTable) -> None:
        self._table = table
        self._ours = lance_core.open_dataset(str(table.path))
        self._theirs = table.open()
        self._judge: Judge | None = None

    @property
    def judge(self) -> Judge:
        """Made when it is first needed."""
        if self._judge is None:
            self._judge = Judge(self._table)
        return self._judge

    def ours(self, ask: Ask) -> NDArray[np.float32]:
        found = self._ours.search_text(
            ask.query,
            ask.k,
            columns=["id", "_score"],
            filter=ask.filter,
            prefilter=ask.prefilter,
            offset=ask.offset,
            fast_search=ask.fast_search,
        )
        assert len(set(found["id"].to_pylist())) == len(found)
        scores: NDArray[np.float32] = found["_score"].to_numpy()
        assert (np.diff(scores) <= 0).all()
        return scores

    def theirs(self, ask: Ask) -> NDArray[np.float32]:
        found = self._theirs.scanner(
            columns=["id", "_score"],
            full_text_query=query_of_pylance(ask.query),
            limit=ask.k,
            offset=ask.offset if ask.offset > 0 else None,
            filter=ask.filter,
            prefilter=ask.prefilter,
            fast_search=ask.fast_search,
        ).to_table()
        return -np.sort(-found["_score"].to_numpy())

    def is_tied(self, ask: Ask) -> bool:
        """Return whether it is left open which rows are the best before they are filtered."""
        if ask.k is None:
            return False
        last = ask.offset + ask.k
        scores = self.theirs(replace(ask, k=last + 1, offset=0, filter=None, prefilter=True))
        ends = [at for at in (ask.offset, last) if 0 < at < len(scores)]
        return any(_same(scores[at - 1 : at], scores[at : at + 1]) for at in ends)


def _same(one: object, other: object) -> bool:
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=TOLERANCE, atol=NEAR_ZERO))


def _told(scores: object) -> str:
    listed = np.asarray(scores).tolist()
    return f"{len(listed)} rows, {[round(score, 6) for score in listed[:8]]}"


def main() -> None:
    """Run queries over all cases; exit with 1 if we answered any wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=_MOST_ROWS, help="rows of a table at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="number of the only case to run")
    options = parser.parse_args()
    total = Outcome()
    for number, case, outcome in _run_all(options):
        total.add(outcome)
        print(f"{number} {case}: {len(outcome.wrong)} of {outcome.num_queries} wrong", flush=True)  # noqa: T201
    print("\n".join(total.wrong))  # noqa: T201
    print(  # noqa: T201
        f"{total.num_queries} queries, {len(total.wrong)} of them wrong; pylance was wrong in"
        f" {dict(total.peer_wrong)}, {total.num_tied} had ties before their filter"
    )
    sys.exit(1 if len(total.wrong) > 0 else 0)


def _run_all(options: argparse.Namespace) -> Iterator[tuple[int, TextCase, Outcome]]:
    chosen = list(enumerate(cases(options.rows)))
    if options.only is not None:
        chosen = chosen[options.only : options.only + 1]
    count = -(-options.count // len(chosen))
    for number, case in chosen:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "texts.lance"
            yield number, case, run_case(path, case, count, options.seed + number)


if __name__ == "__main__":
    main()
