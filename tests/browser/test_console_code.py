"""The code that the console shows for a query runs, and finds the same rows."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser_pages import HOSTILE, ask, ask_by_vector, row_texts, select_mode
from tests.live_server import live_server
from tests.pylance_dataset import VECTORS

if TYPE_CHECKING:
    from pathlib import Path


def _code(page: Any, language: Any) -> Any:
    page.get_by_role("tab", name="Code").click()
    return page.locator(f'pre[data-language="{language}"]').inner_text()


def _run(*command: Any, **variables: Any) -> Any:
    environment = os.environ | variables
    done = subprocess.run(  # noqa: S603 - what the console shows
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _ids_by_curl(page: Any, **variables: Any) -> list[Any]:
    answer = json.loads(_run("bash", "-c", _code(page, "curl"), **variables))
    return [str(row["id"]) for row in answer["rows"]]


def _ids_by_python(page: Any, **variables: Any) -> list[Any]:
    printed = _run(sys.executable, "-c", _code(page, "python"), **variables)
    return [str(ast.literal_eval(line)["id"]) for line in printed.splitlines()]


@pytest.mark.parametrize("run", [_ids_by_curl, _ids_by_python])
def test_the_code_of_a_vector_query_finds_the_rows_that_are_shown(t1: Any, run: Any) -> None:
    t1.get_by_role("combobox", name="Filter").fill("kind IN ('kind 1', 'it''s')")
    ask_by_vector(t1, VECTORS[3].tolist(), refine=3, probes=2)
    shown = row_texts(t1, "id")
    assert len(shown) == 10
    assert run(t1) == shown


@pytest.mark.parametrize("run", [_ids_by_curl, _ids_by_python])
def test_the_code_of_other_queries_runs_too(t1: Any, run: Any) -> None:
    select_mode(t1, "Filter")
    t1.get_by_text("Columns and options").click()
    t1.get_by_label("Use no index: exact").check()
    t1.get_by_role("combobox", name="Filter").fill("kind != '$HOME `ls` \\ \" \n'' é'")
    t1.get_by_label("Rows (k)").fill("4")
    ask(t1)
    assert run(t1) == row_texts(t1, "id")


@pytest.mark.parametrize("name", ["o'; exit 9; '", "p$q"])
def test_no_name_of_a_table_becomes_a_command(page: Any, console_url: Any, name: Any) -> None:
    page.goto(f"{console_url}/console/")
    page.get_by_text("odd", exact=True).click()
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("heading", name=name).wait_for()
    ask(page)
    for code in (
        ("bash", "-c", _code(page, "curl")),
        (sys.executable, "-c", _code(page, "python")),
    ):
        assert HOSTILE[3] in _run(*code)


def test_tokens_go_where_bearers_of_tokens_put_them(t1: Any) -> None:
    made = t1.evaluate(
        """Promise.all([import("./js/api.js"), import("./js/snippets.js")])
        .then(([{ keyHeader }, { snippets }]) =>
          ["ab.c-d.e_f", "lsk_1.2", "plain"].map((key) => snippets("/", {}, keyHeader(key))))"""
    )
    assert '-H "Authorization: Bearer $LANCE_KEY"' in made[0]["curl"]
    assert '"Authorization": "Bearer " + os.environ["LANCE_KEY"]' in made[0]["python"]
    assert '"Authorization": "Bearer " + (process.env.LANCE_KEY ?? "")' in made[0]["typescript"]
    assert all('-H "x-api-key: $LANCE_KEY"' in each["curl"] for each in made[1:])


def test_the_code_takes_the_key_from_the_environment(page: Any, console_root: Path) -> None:
    with live_server(console_root, api_keys=("right",)) as url:
        page.goto(f"{url}/console/")
        page.get_by_label("Key", exact=True).fill("right")
        page.get_by_role("button", name="Use key").click()
        ask_by_vector(page, VECTORS[3].tolist())
        shown = row_texts(page, "id")
        for run in (_ids_by_curl, _ids_by_python):
            assert run(page, LANCE_KEY="right") == shown


@pytest.mark.parametrize(
    ("pasted", "read"),
    [
        ("[1, -2.5e-3]", [1, -0.0025]),
        ("1 2\n3", [1, 2, 3]),
        ("1,2, 3;", [1, 2, 3]),
        ('{"k": 1, "vector": [4]}', [4]),
        ("", None),
        ("[1, NaN]", None),
        ("{", None),
        ('{"k": 1}', None),
    ],
)
def test_vectors_are_read_as_people_paste_them(t1: Any, pasted: Any, read: Any) -> None:
    found = t1.evaluate(
        """(text) => import("./js/query_body.js").then(({ parseVector }) => {
          try { return parseVector(text); } catch (error) { return null; }
        })""",
        pasted,
    )
    assert found == read


def test_numbers_keep_their_digits_and_texts_their_signs(t1: Any) -> None:
    given = {"n": [12345678901234567890, None, True, 0.1], "é": "'\"\\\n\u2028</script>", "e": {}}
    written = t1.evaluate(
        """(text) => import("./js/json.js").then(({ parseJson, toJson, toPython }) =>
          [toJson(parseJson(text), "  "), toPython(parseJson(text))])""",
        json.dumps(given),
    )
    assert json.loads(written[0]) == ast.literal_eval(written[1]) == given


def test_typescript_is_shown_with_the_same_body(t1: Any) -> None:
    ask_by_vector(t1, VECTORS[3].tolist())
    code = _code(t1, "typescript")
    body = code.split("JSON.stringify(", 1)[1].split(");\n", 1)[0]
    assert json.loads(body)["k"] == 10
    assert f"{t1.url.split('/console')[0]}/v1/table/t1/query" in code
