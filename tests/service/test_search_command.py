"""``lance-serve search`` as a user types it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from typer.testing import CliRunner

from lance_core import open_dataset, write_dataset
from service.cli.main import app
from tests.text_dataset import VECTORS, rows as rows_without_index, write_text_dataset

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

RUNNER = CliRunner(env={"COLUMNS": "200"})
QUERY = orjson.dumps(VECTORS[7].tolist()).decode()


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Any:
    uri = tmp_path_factory.mktemp("texts") / "t.lance"
    write_text_dataset(uri)
    return uri


def run(*arguments: Any, status: int = 0) -> Any:
    done = RUNNER.invoke(app, ["search", *map(str, arguments)])
    assert done.exit_code == status, done.output
    return done


def rows(*arguments: Any) -> Any:
    return orjson.loads(run(*arguments, "--json").stdout)["rows"]


def test_a_vector_finds_the_rows_nearest_to_it(uri: Path, tmp_path: Path) -> None:
    expected = open_dataset(uri).search(VECTORS[7], 3, columns=["id"]).to_pylist()
    assert [row["id"] for row in rows(uri, "--vector", QUERY, "--k", 3)] == [
        row["id"] for row in expected
    ]
    held = tmp_path / "vector.json"
    held.write_text(QUERY)
    assert rows(uri, "--vector", f"@{held}", "--k", 3, "--column", "id") == [
        {"id": row["id"], "_distance": pytest.approx(row["_distance"])} for row in expected
    ]


def test_words_find_the_rows_that_fit_best(uri: Path) -> None:
    expected = open_dataset(uri).search_text("river newt", 5, columns=["id"])
    found = rows(uri, "--text", "river newt", "--k", 5, "--column", "id")
    assert [row["id"] for row in found] == expected["id"].to_pylist()
    assert [row["_score"] for row in found] == pytest.approx(expected["_score"].to_pylist())


def test_words_may_be_a_phrase_and_named_columns(uri: Path) -> None:
    assert rows(uri, "--text", '"otter heron"', "--text-column", "text", "--k", 3)
    in_one = rows(uri, "--text", "river", "--text-column", "title", "--k", 400)
    in_both = rows(
        uri, "--text", "river", "--text-column", "title", "--text-column", "text", "--k", 400
    )
    assert len(in_both) > len(in_one) > 0


def test_a_query_may_be_an_object(uri: Path) -> None:
    both = [{"match": {"terms": each, "column": "text"}} for each in ("river", "newt")]
    tree = orjson.dumps({"query": {"boolean": {"must": both}}}).decode()
    found = rows(uri, "--text", tree, "--k", 400, "--column", "text")
    assert found
    assert all({"river", "newt"} <= set(row["text"].split()) for row in found)


def test_words_and_a_vector_make_one_answer(uri: Path) -> None:
    found = rows(uri, "--text", "river", "--vector", QUERY, "--k", 4, "--column", "id")
    assert [*found[0]] == ["id", "_distance", "_score", "_relevance_score"]
    weighted = rows(
        uri, "--text", "river", "--row-id", 7, "--weights", 0, 1, "--k", 4, "--column", "id"
    )
    assert weighted[0]["_relevance_score"] == 1


def test_rows_are_shown_as_a_table_without_vectors(uri: Path) -> None:
    done = run(uri, "--text", "river", "--k", 2, "--filter", "id < 100", "--with-row-id")
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["id", "text", "title", "plain", "price", "_score", "_rowid"]
    assert len(lines) == 2
    assert "2 rows of version" in done.stderr


def test_nothing_found_is_said(uri: Path) -> None:
    done = run(uri, "--text", "platypus")
    assert done.stdout == ""
    assert "0 rows of version" in done.stderr


def test_a_plan_tells_what_was_done(uri: Path) -> None:
    assert "text_idx" in run(uri, "--text", "river", "--plan").stdout
    plan = orjson.loads(run(uri, "--text", "river", "--plan", "--json").stdout)
    assert plan["stats"]["plan"] == "text"


def test_a_missing_index_is_told_as_users_build_it(uri: Path, tmp_path: Path) -> None:
    done = run(uri, "--text", '"otter heron"', "--text-column", "title", status=1)
    assert "build it with --positions" in " ".join(done.output.split())
    write_dataset(tmp_path / "t.lance", rows_without_index(0, 3))
    done = run(tmp_path / "t.lance", "--text", "otter", status=1)
    assert "index create DATASET COLUMN --type fts" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "give --text, --vector or --row-id"),
        (["--vector", "[1, 2"], 1, "error: --vector: is no JSON"),
        (["--vector", "@nowhere.json"], 1, "nowhere.json"),
        (["--vector", '["a"]'], 1, "error: --vector: must hold numbers only"),
        (["--text", '{"query": {}}'], 1, "error: --text.query: give one of match"),
        (["--text", "{"], 1, "error: --text: is no JSON"),
        (["--text", "{}", "--text-column", "t"], 2, "names its columns itself"),
        (["--text-column", "text", "--row-id", 1], 2, "give --text too"),
        (["--text", "a", "--weights", 1, 1], 1, "error: --weights: needs a vector"),
        (["--text", "a", "--column", "nope"], 1, "nope"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
def test_mistakes_are_told_as_users_type_things(
    uri: Path, arguments: list[Any], status: int, said: str
) -> None:
    assert said in " ".join(run(uri, *arguments, status=status).output.split())
