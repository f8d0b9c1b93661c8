"""Random text queries of all kinds rank rows as pylance does; `make texts` runs many more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.text_asks import KINDS, AskWriter, query_of_pylance
from tests.text_judge import Judge
from tests.text_runs import compare, few_cases, run_case
from tests.text_tables import TextCase, build_table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("case", few_cases(1_200), ids=str)
def test_random_text_queries_rank_rows_as_pylance_does(tmp_path: Path, case: TextCase) -> None:
    outcome = run_case(tmp_path / "texts.lance", case, count=3 * len(KINDS), seed=3)
    assert outcome.wrong == []
    assert outcome.peer_wrong.keys() <= {"combined fields"}
    assert outcome.num_tied < outcome.num_queries / 10


def test_the_judge_of_differences_scores_as_pylance_does(tmp_path: Path) -> None:
    case = TextCase("wordnet code", 256, 3, "appended", 1_200)
    table = build_table(tmp_path / "texts.lance", case)
    judge, theirs = Judge(table), table.open()
    texts = [text for text in table.rows["t"].to_pylist() if text is not None]
    writer = AskWriter(texts, np.random.default_rng(4))
    for ask in [writer.ask(kind) for kind in KINDS for _ in range(3)]:
        if not ask.prefilter:
            continue
        found = theirs.scanner(
            columns=["id", "_score"],
            full_text_query=query_of_pylance(ask.query),
            limit=ask.k,
            offset=ask.offset,
            filter=ask.filter,
            prefilter=True,
            fast_search=ask.fast_search,
        ).to_table()
        expected = -np.sort(-found["_score"].to_numpy())
        np.testing.assert_allclose(judge.scores(ask), expected, rtol=1e-5, atol=1e-6)


def test_a_score_that_is_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = TextCase("generated", 128, 1, "as built", 600)
    table = build_table(tmp_path / "texts.lance", case)
    texts = [text for text in table.rows["t"].to_pylist() if text is not None]
    ask = AskWriter(texts, np.random.default_rng(5)).ask("no index")
    assert compare(table, [ask]).wrong == []
    monkeypatch.setattr("lance_core.index.text.statistics.rarity_of", lambda *_: 0.5)
    (told,) = compare(table, [ask]).wrong
    assert str(ask) in told
