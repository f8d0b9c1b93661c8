"""What keeps rows out of answers to queries for words, held to the answers themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pytest

from lance_core import MatchQuery, TextQuery, open_dataset
from lance_core.errors import InvalidRequestError
from tests.client_dataset import ANIMALS, rows, write_client_dataset
from tests.pylance_dataset import LIVE, NUM_INDEXED

if TYPE_CHECKING:
    from pathlib import Path

    from lance_core import Dataset

pytestmark = pytest.mark.interop

NEWT = MatchQuery("newt", "text")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    path = tmp_path_factory.mktemp("words") / "t1.lance"
    write_client_dataset(path)
    return open_dataset(str(path))


@pytest.fixture(scope="module")
def ids(dataset: Dataset) -> Any:
    """Row ids by ``id``."""
    found = dataset.scan(["id"], with_row_id=True).read_all()
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def reason(dataset: Dataset, row_id: int, **members: Any) -> Any:
    return dataset.why_not(TextQuery(NEWT, **members), row_id)


@pytest.mark.parametrize("prefilter", [True, False])
def test_all_rows_are_where_the_answer_says(dataset: Dataset, ids: Any, prefilter: Any) -> None:
    members = {"k": 20, "offset": 5, "filter": "id < 400", "prefilter": prefilter}
    answer = dataset.run(TextQuery(NEWT, columns=("id",), **members)).table["id"].to_pylist()
    first = dataset.run(TextQuery(NEWT, columns=("id",), **{**members, "offset": 0, "k": 25}))
    skipped = set(first.table["id"].to_pylist()[:5])
    for row in LIVE.tolist()[::7] + answer[:4] + sorted(skipped):
        found = reason(dataset, ids[row], **members)
        if row in answer:
            assert found.reason == "present"
            assert answer[found.detail["rank"] - 6] == row
        elif row in skipped:
            assert found.reason == "before_offset"
        elif ANIMALS[row % 5] != "newt":
            assert found.reason == ("filtered" if prefilter and row >= 400 else "no_match")
        elif row >= 400:
            assert found.reason in ({"filtered"} if prefilter else {"filtered", "beaten"})
        else:
            assert found.reason == "beaten"
            assert found.detail["score"] <= found.detail["last_score"]


def test_rows_that_are_not_there(dataset: Dataset) -> None:
    assert reason(dataset, 49).reason == "deleted"
    assert reason(dataset, 300).reason == "unknown"
    assert reason(dataset, 2**64 - 1).reason == "unknown"
    for wrong in (-1, 2**64):
        with pytest.raises(InvalidRequestError, match="row id"):
            reason(dataset, wrong)


def test_rows_that_a_fast_search_does_not_look_at(dataset: Dataset, ids: Any) -> None:
    newer = next(row for row in range(NUM_INDEXED, 620) if ANIMALS[row % 5] == "newt")
    assert reason(dataset, ids[newer], k=None).reason == "present"
    assert reason(dataset, ids[newer], k=None, fast_search=True).reason == "not_indexed"


def test_stable_row_ids(tmp_path: Path) -> None:
    path = str(tmp_path / "stable.lance")
    made = lance.write_dataset(rows(0, 50), path, enable_stable_row_ids=True)
    made.create_scalar_index("text", "INVERTED")
    made.delete("id = 8")
    stable = open_dataset(path)
    assert [reason(stable, row, k=1).reason for row in (3, 4, 8, 13, 99)] == [
        "present",
        "no_match",
        "deleted",
        "beaten",
        "unknown",
    ]


def test_a_filter_that_is_wrong_is_told(dataset: Dataset) -> None:
    for text in ("id >", "nope = 1", "id < 3) OR (id > 4"):
        with pytest.raises(InvalidRequestError):
            reason(dataset, 3, filter=text)
    told = reason(dataset, 3, filter="id > $least", params={"least": 100})
    assert told.text().startswith("row 3 does not pass the filter")
