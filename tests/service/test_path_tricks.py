"""No way of writing a name leads out of the root: dots, slashes, links, delimiters, databases."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pytest

import lance_core
from tests.live_server import live_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK = "what nobody may see"

NAMES = [
    "../secret",
    "..%2fsecret",
    "%2e%2e%2fsecret",
    "%2e%2e/secret",
    ".%2e%2fsecret",
    "%252e%252e%252fsecret",
    "..%5csecret",
    "..\\secret",
    "..$secret",
    "%2e%2e%24secret",
    "$..$secret",
    "ns$..$..$secret",
    "t1.lance$..$..$secret",
    "t1%00",
    "secret%00t1",
    "%00",
    "/secret",
    "%2fsecret",
    "//secret",
    "..;/secret",
    "%c0%ae%c0%ae%c0%afsecret",
    "%ff%fe",
    "link",
    "up$secret",
    "up",
    "t1.lance",
    "t1%2f..%2f..%2fsecret",
    "~root",
    "*",
    ".hidden",
    "t1 ",
    "{root}/../secret",
    "file:%2f%2f{root}%2f..%2fsecret",
]
DELIMITERS = ["$", ".", "..", "/", "%2f", "a", "%5c", "%00", ""]
HEADERS = [
    {"x-lancedb-database-prefix": ".."},
    {"x-lancedb-database-prefix": "../"},
    {"x-lancedb-database-prefix": "ns/../.."},
    {"x-lancedb-database-prefix": "%2e%2e"},
    {"x-lancedb-database-prefix": "up"},
    {"x-lancedb-database-prefix": "/etc"},
    {"x-lancedb-database": ".."},
    {"x-lancedb-database": "../secret"},
    {"x-lancedb-database": "/"},
]
PATHS = ("query", "describe", "count_rows", "exists", "version/list", "index/list", "coverage")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one table, and beside it one that links and names might lead to."""
    above = tmp_path_factory.mktemp("above")
    root = above / "root"
    (root / "ns").mkdir(parents=True)
    secret = pa.table({"id": [1], "words": [MARK]})
    lance_core.write_dataset(str(above / "secret.lance"), secret)
    lance_core.write_dataset(str(root / "t1.lance"), pa.table({"id": [1], "words": ["open"]}))
    (root / "link.lance").symlink_to(above / "secret.lance")
    (root / "up").symlink_to(above)
    return root


@pytest.fixture(scope="module", params=["one root", "databases"])
def url(root: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "one root":
        with live_server(root, load_kernels=lambda: None) as url:
            yield url
    else:
        places = {"one": {"root": str(root)}}
        with live_server(None, databases=places, load_kernels=lambda: None) as url:
            yield url


class Asker:
    """Sends paths as they are: clients would tidy them up."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def __call__(self, method: str, path: str, headers: Any = None) -> tuple[int, str]:
        self._connection.putrequest(method, path)
        body = b"{}" if method == "POST" else b""
        for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
            self._connection.putheader(name, value)
        self._connection.putheader("accept", "application/json")
        self._connection.endheaders(body)
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def ask(url: str) -> Iterator[Any]:
    asker = Asker(url)
    yield asker
    asker.close()


def assert_hidden(status: int, text: str) -> None:
    assert MARK not in text
    assert status in {200, 400, 403, 404, 406}, text


def spelt(name: str, root: Path) -> str:
    return name.replace("{root}", str(root)).replace(" ", "%20")


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_table_leads_out(ask: Asker, root: Path, name: str) -> None:
    for inside in ("", "one$"):
        for path in PATHS:
            method = "GET" if path == "coverage" else "POST"
            got = ask(method, f"/v1/table/{inside}{spelt(name, root)}/{path}")
            assert_hidden(*got)
            assert got[0] != 200
        assert_hidden(*ask("GET", f"/ready?table={inside}{quote(name)}"))


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_namespace_leads_out(ask: Asker, root: Path, name: str) -> None:
    for inside in ("", "one$"):
        for path in ("list", "table/list"):
            status, text = ask("GET", f"/v1/namespace/{inside}{spelt(name, root)}/{path}")
            assert_hidden(status, text)
            assert "secret" not in str(json.loads(text).get("tables"))
            assert "root" not in str(json.loads(text).get("namespaces"))


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_no_delimiter_leads_out(ask: Asker, delimiter: str) -> None:
    for name in ("..", "../secret", "%2e%2e%2fsecret", "..asecret", "....secret", "...secret"):
        for path in ("query", "describe"):
            got = ask("POST", f"/v1/table/{name}/{path}?delimiter={delimiter}")
            assert_hidden(*got)
            assert got[0] != 200


@pytest.mark.parametrize("headers", HEADERS, ids=repr)
def test_no_header_leads_out(ask: Asker, headers: Any) -> None:
    for path in ("/v1/table/secret/query", "/v1/table/one$secret/query", "/v1/table/t1/../secret"):
        assert_hidden(*ask("POST", path, headers))
    for path in ("/v1/table", "/v1/table/", "/v1/namespace/$/table/list", "/v1/namespace/$/list"):
        status, text = ask("GET", path, headers)
        assert_hidden(status, text)
        assert "secret" not in str(json.loads(text).get("tables"))


def test_listings_show_no_link_that_leads_out_and_the_table_itself_can_be_read(
    ask: Asker,
) -> None:
    status, text = ask("GET", "/v1/table")
    tables = json.loads(text)["tables"]
    assert status == 200
    assert [name.removeprefix("one$") for name in tables] == ["t1"]
    status, text = ask("POST", f"/v1/table/{tables[0]}/query?format=json")
    assert (status, json.loads(text)["rows"]) == (200, [{"id": 1, "words": "open"}])
