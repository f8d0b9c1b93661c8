"""The console's files, what the cache tells, and vectors of texts, over HTTP."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lance_core import open_dataset
from lance_core.cache.figures import StoreFigures
from service.api.cached_tables import cached_tables
from service.api.callers import ANYONE, Caller, Rights
from service.api.text_models import load_text_model
from service.cli.main import app
from service.console.files import console_files
from service.settings import Settings, TextModel
from tests.service_client import Contract, ServiceClient, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.fake_dataset import FakeStore

EXAMPLES = Path(__file__).parents[2] / "examples"
VOCABULARY = EXAMPLES / "minilm" / "vocab.txt"


@pytest.fixture
async def locked(tmp_path: Path, contract: Contract, store: FakeStore) -> AsyncIterator[Any]:
    async with serving(
        tmp_path,
        contract=contract,
        open_dataset=store,
        load_kernels=lambda: None,
        api_keys=("one",),
    ) as client:
        await client.wait_until_ready()
        yield client


async def test_the_page_comes_with_a_policy_that_lets_in_nothing_else(
    client: ServiceClient,
) -> None:
    answer = await client.http.get("/console/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "trusted-types 'none'"):
        assert rule in policy.split("; ")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_without_its_slash_the_path_leads_to_the_page_wherever_it_is_mounted(
    client: ServiceClient,
) -> None:
    answer = await client.http.get("/console")
    assert (answer.status_code, answer.headers["location"]) == (308, "console/")


async def test_all_that_the_files_name_is_there(client: ServiceClient) -> None:
    for path, file in console_files().items():
        for name in _named_in(file.body.decode()):
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            answer = await client.http.get(f"/console/{found}")
            assert answer.status_code == 200, (path, name)


def _named_in(text: str) -> list[str]:
    attributes = re.findall(r'(?:src|href)="([^"#]+)"', text)
    return attributes + re.findall(r'^(?:import|\} from) .*?"([^"]+)"', text, re.MULTILINE)


def test_nothing_is_fetched_from_elsewhere_and_nothing_is_inline() -> None:
    for path, file in console_files().items():
        text = file.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert re.search(r"https?://", text) is None, path
        assert re.search(r"<script(?![^>]*src=)|\son\w+=\"|style=\"|<style", text) is None, path
        assert re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text) is None


async def test_what_a_browser_has_is_not_sent_again(client: ServiceClient) -> None:
    first = await client.http.get("/console/js/main.js")
    again = await client.http.get(
        "/console/js/main.js", headers={"if-none-match": first.headers["etag"]}
    )
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


@pytest.mark.parametrize(
    "path",
    ["js", "js/", "nothing.js", "../files.py", "%2e%2e/files.py", "js/%2e%2e/index.html", "x/y"],
)
async def test_other_files_are_not_there(client: ServiceClient, path: Any) -> None:
    request = client.http.build_request("GET", "/console/")
    request.url = request.url.copy_with(raw_path=f"/console/{path}".encode())
    answer = await client.http.send(request)
    assert (answer.status_code, answer.json()["code"]) == (404, 0)


async def test_files_need_no_key_and_data_do(locked: ServiceClient) -> None:
    for path in ("/console", "/console/", "/console/js/api.js"):
        assert (await locked.http.get(path)).status_code in {200, 308}
    for path in ("/v1/cache", "/v1/table", "/v1/table/t1/embed"):
        assert (await locked.get(path)).status_code == 401


async def test_the_cache_tells_what_it_holds_of_a_table(served: ServiceClient) -> None:
    before = (await served.get("/v1/cache")).json()
    assert (before["used_bytes"], before["tables"]) == (0, [])
    await served.post("/v1/table/t1/query", {"vector": [0.0] * 16, "k": 3})
    after = (await served.get("/v1/cache")).json()
    (table,) = after["tables"]
    assert table["table"] == "t1"
    assert table["used_bytes"] == after["used_bytes"] > 0
    assert table["entries"] == after["entries"] > 0
    assert (table["hits"], table["misses"]) == (after["hits"], after["misses"])


async def test_the_cache_tells_of_the_local_disk_too(
    tmp_path: Path, contract: Contract, store: FakeStore
) -> None:
    async with serving(
        tmp_path,
        contract=contract,
        open_dataset=store,
        load_kernels=lambda: None,
        disk_cache=str(tmp_path / "kept"),
        disk_cache_bytes=1 << 20,
    ) as client:
        found = (await client.get("/v1/cache")).json()["disk"]
    assert found == {"budget_bytes": 1 << 20, "used_bytes": 0, "hits": 0, "misses": 0, "damaged": 0}


FIGURES = {
    "/data/t.lance": StoreFigures(100, 1, 5, 1, 0),
    "/data/t.lance/tree/dev": StoreFigures(11, 1, 0, 1, 0),
    "/data/a/u.lance": StoreFigures(700, 2, 0, 2, 0),
    "/elsewhere/base": StoreFigures(3, 1, 0, 1, 0),
}


def _told(settings: Settings, caller: Caller, figures: Any = FIGURES) -> list[Any]:
    found = cached_tables(figures, settings, caller)
    return [(each["table"], each["used_bytes"], each["hits"]) for each in found]


def test_branches_count_as_their_table_and_other_places_as_none() -> None:
    told = _told(Settings(root="/data"), ANYONE)
    assert told == [("a$u", 700, 0), ("t", 111, 5), (None, 3, 0)]


def test_only_those_tables_are_told_that_the_caller_may_read() -> None:
    caller = Caller.of("key", Rights(databases=None, tables=("a$*",), write=False))
    assert _told(Settings(root="/data"), caller) == [("a$u", 700, 0)]


def test_tables_of_several_databases_are_told_apart() -> None:
    places = {"one": {"root": "/data"}, "two": {"root": "s3://bucket/x"}}
    figures = {"/data/t.lance": StoreFigures(1), "s3://bucket/x/t.lance#0a1b2c3d": StoreFigures(2)}
    settings = Settings(databases=places)  # type: ignore[arg-type]  # pydantic makes places
    assert _told(settings, ANYONE, figures) == [("two$t", 2, 0), ("one$t", 1, 0)]
    only = Caller.of("key", Rights(databases=("two",), tables=None, write=False))
    assert _told(settings, only, figures) == [("two$t", 2, 0)]


async def test_without_a_model_texts_have_no_vectors(client: ServiceClient) -> None:
    assert (await client.get("/v1/table/t1/embed")).json() == {"models": []}
    answer = await client.post("/v1/table/t1/embed", {"text": "a boat"})
    assert (answer.status_code, answer.json()["code"]) == (406, 0)
    assert "no model for texts" in answer.json()["error"]


@pytest.fixture(scope="module")
def minilm() -> Any:
    return TextModel(table="wordnet", column="vector", vocabulary=str(VOCABULARY))


def test_the_model_makes_the_vectors_of_the_example(minilm: TextModel) -> None:
    loaded = load_text_model(Settings(root="/data", text_model=minilm))
    assert loaded is not None
    rows = open_dataset(EXAMPLES / "data" / "wordnet.lance").take(
        range(0, 7000, 350), columns=["text", "vector"]
    )
    stored = np.stack(rows["vector"].to_numpy())
    made = np.stack([loaded.embedder.embed(text) for text in rows["text"].to_pylist()])
    assert np.einsum("ij,ij->i", stored, made).min() > 0.99
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    assert np.isfinite(loaded.embedder.embed("")).all()


async def test_texts_of_the_demo_become_vectors(contract: Contract, minilm: TextModel) -> None:
    async with serving(
        EXAMPLES / "data", contract=contract, load_kernels=lambda: None, text_model=minilm
    ) as client:
        await client.wait_until_ready()
        listed = (await client.get("/v1/table/wordnet/embed")).json()
        assert listed == {"models": [{"column": "vector", "model": "all-MiniLM-L6-v2"}]}
        path = "/v1/table/wordnet/embed"
        answer = (await client.post(path, {"text": "a small boat", "column": "vector"})).json()
        assert np.linalg.norm(answer["vector"]) == pytest.approx(1, abs=1e-6)
        for body in ({"text": "x" * 4097}, {"text": "x", "column": "text"}):
            assert (await client.post(path, body)).status_code == 400
        assert (await client.post(path, {}, bad=True)).status_code == 400


def test_a_missing_vocabulary_is_told_before_the_service_starts(tmp_path: Path) -> None:
    model = {"table": "t", "column": "vector", "vocabulary": "none.txt"}
    done = CliRunner().invoke(
        app,
        ["serve", "--root", str(tmp_path)],
        env={"LANCE_SERVE_TEXT_MODEL": json.dumps(model)},
    )
    assert done.exit_code == 2
    assert "text_model: there is no vocabulary none.txt" in done.output
