"""Keys with rights, bearer tokens, and what is shown to whom."""

from __future__ import annotations

import json
import logging
import os
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from service.api.key_file import load_keys
from service.cli.main import app
from service.settings import digest_of
from service.telemetry.json_logging import JsonFormatter
from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.service_client import Contract, ServiceClient, serving
from tests.signed_tokens import AUDIENCE, ISSUER, key_set, public_key, token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

VECTOR = {"vector": [1, 2, 3, 4], "k": 1}
TABLES = ("open", "shut", "a$open", "a$b$deep", "c$shut")

RIGHTS: dict[str, Any] = {
    "all": {},
    "one": {"tables": ["open"]},
    "below": {"tables": ["a$*"]},
    "none": {"tables": []},
    "writer": {"write": True},
    "elsewhere": {"databases": ["another"]},
}


def write_keys(file: Path, rights: Any) -> None:
    entries = [
        {"name": name, "sha256": digest_of(f"key of {name}")} | rights
        for name, rights in rights.items()
    ]
    file.write_text(yaml.safe_dump({"keys": entries}))


def write_keys_wrong(file: Path) -> None:
    file.write_text("keys: [")


def key(name: str) -> dict[str, str]:
    return {"x-api-key": f"key of {name}"}


def serving_tables(tmp_path: Path, contract: Contract, **settings: Any) -> Any:
    root = tmp_path / "root"
    store = FakeStore()
    for name in TABLES:
        *above, own = name.split("$")
        root.joinpath(*above, f"{own}.lance").mkdir(parents=True)
        store.datasets[f"{own}.lance"] = {1: FakeDataset(make_table())}
    return serving(
        root, contract=contract, open_dataset=store, load_kernels=lambda: None, **settings
    )


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys.yaml"
    write_keys(file, RIGHTS)
    return file


@pytest.fixture
async def guarded(tmp_path: Path, contract: Contract, keys_file: Path) -> AsyncIterator[Any]:
    async with serving_tables(tmp_path, contract, api_keys_file=str(keys_file)) as client:
        await client.wait_until_ready()
        yield client


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("all", set(TABLES)),
        ("one", {"open"}),
        ("below", {"a$open", "a$b$deep"}),
        ("none", set()),
        ("writer", set(TABLES)),
        ("elsewhere", set()),
    ],
)
async def test_a_key_reads_and_is_shown_only_its_tables(
    guarded: ServiceClient, name: str, readable: set[str]
) -> None:
    for table in TABLES:
        for path in ("query", "count_rows", "describe", "exists", "explain_plan"):
            body = {"query": VECTOR} if path == "explain_plan" else VECTOR
            body = body if path in {"query", "explain_plan"} else {}
            answer = await guarded.post(f"/v1/table/{table}/{path}", body, headers=key(name))
            if table in readable:
                assert answer.status_code == 200
            else:
                assert (answer.status_code, answer.json()["code"]) == (403, 15)
                assert "no right" in answer.json()["error"]
    answer = await guarded.get("/v1/table", headers=key(name))
    if answer.status_code == 200:
        assert set(answer.json()["tables"]) == readable
    else:
        assert (answer.status_code, readable) == (403, set())


async def test_listings_of_one_namespace_show_what_may_be_read(guarded: ServiceClient) -> None:
    answer = await guarded.get("/v1/namespace/a/table/list", headers=key("below"))
    assert answer.json()["tables"] == ["open"]
    assert (await guarded.get("/v1/table/", headers=key("one"))).json()["tables"] == ["open"]
    answer = await guarded.get("/v1/namespace/$/list", headers=key("below"))
    assert answer.json()["namespaces"] == ["a"]
    answer = await guarded.get("/v1/namespace/$/list", headers=key("all"))
    assert answer.json()["namespaces"] == ["a", "c"]
    for path in ("table/list", "list"):
        answer = await guarded.get(f"/v1/namespace/c/{path}", headers=key("below"))
        assert (answer.status_code, answer.json()["code"]) == (403, 15)
    answer = await guarded.post("/v1/namespace/c/exists", headers=key("below"))
    assert (answer.status_code, answer.json()["code"]) == (403, 15)


async def test_a_table_that_is_not_there_looks_like_one_that_may_not_be_read(
    guarded: ServiceClient,
) -> None:
    answers = [
        await guarded.post(f"/v1/table/{name}/describe", headers=key("one"))
        for name in ("shut", "nope")
    ]
    assert {(each.status_code, each.json()["code"]) for each in answers} == {(403, 15)}


async def test_a_key_of_one_database_is_shown_no_other(
    tmp_path: Path, contract: Contract, keys_file: Path
) -> None:
    store = FakeStore(t=FakeDataset(make_table()))
    for name in ("one", "two"):
        (tmp_path / name / "t.lance").mkdir(parents=True)
    places = {name: {"root": str(tmp_path / name)} for name in ("one", "two")}
    write_keys(
        keys_file, {"half": {"databases": ["one"]}, "part": {"tables": ["one$*"]}, "all": {}}
    )
    settings = {"databases": places, "api_keys_file": str(keys_file)}
    options: dict[str, Any] = {"open_dataset": store, "load_kernels": lambda: None}
    async with serving(None, contract=contract, **options, **settings) as client:
        await client.wait_until_ready()

        async def shown(path: str, member: str, name: str) -> Any:
            return (await client.get(path, headers=key(name))).json()[member]

        assert await shown("/v1/table", "tables", "all") == ["one$t", "two$t"]
        for name in ("half", "part"):
            assert await shown("/v1/table", "tables", name) == ["one$t"]
            assert await shown("/v1/namespace/$/list", "namespaces", name) == ["one"]
            # whether there is another database is not told
            for database, status in (("one", 200), ("two", 403), ("nope", 403)):
                by_header = key(name) | {"x-lancedb-database": database}
                for table, headers in ((f"{database}$t", key(name)), ("t", by_header)):
                    answer = await client.post(f"/v1/table/{table}/query", VECTOR, headers=headers)
                    assert answer.status_code == status
                    if status == 403:
                        text = f"this key has no right to enter namespace '{database}'"
                        assert answer.json()["error"] == text
                path = f"/v1/namespace/{database}/table/list"
                assert (await client.get(path, headers=key(name))).status_code == status
        answer = await client.post("/v1/table/nope$t/query", VECTOR, headers=key("all"))
        assert answer.status_code == 404


@pytest.mark.parametrize("path", ["insert", "insert/", "create_index", "drop", "tags/create"])
async def test_a_key_that_may_read_changes_nothing(guarded: ServiceClient, path: str) -> None:
    answer = await guarded.post(f"/v1/table/open/{path}", headers=key("all"))
    assert (answer.status_code, answer.json()["code"]) == (403, 15)
    assert "read only" in answer.json()["error"]
    answer = await guarded.post(f"/v1/table/open/{path}", headers=key("writer"))
    assert answer.status_code == 406


async def test_a_change_of_the_file_counts_at_once_and_a_wrong_one_changes_nothing(
    guarded: ServiceClient, keys_file: Path
) -> None:
    path = "/v1/table/shut/count_rows"
    write_keys(keys_file, {"one": {"tables": ["shut"]}})
    guarded.app.state.services.access.reload()
    assert (await guarded.post(path, headers=key("one"))).status_code == 200
    assert (await guarded.post(path, headers=key("all"))).status_code == 401
    write_keys_wrong(keys_file)
    guarded.app.state.services.access.reload()
    assert (await guarded.post(path, headers=key("one"))).status_code == 200


async def test_every_line_says_who_asked_and_holds_no_key(
    guarded: ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "service.request")
    await guarded.post("/v1/table/shut/query", VECTOR, headers=key("one"))
    await guarded.post("/v1/table/shut/query", VECTOR, headers=key("nobody"))
    lines: list[dict[str, Any]] = [vars(record)["fields"] for record in caplog.records]
    told = [(line["status"], line.get("caller"), line["client"]) for line in lines]
    assert told == [(403, "one", "127.0.0.1"), (401, None, "127.0.0.1")]
    assert lines[0]["table"] == "shut"
    assert "key of" not in json.dumps(lines)
    assert "key of" not in caplog.text


@pytest.fixture
async def trusting(tmp_path: Path, contract: Contract) -> AsyncIterator[Any]:
    """A client of a service that takes bearer tokens and one key."""
    file = tmp_path / "jwks.json"
    file.write_bytes(key_set(public_key("ES256", "k1")))
    options = {"jwt_keys": str(file), "jwt_audience": AUDIENCE, "jwt_issuer": ISSUER}
    async with serving_tables(tmp_path, contract, api_keys=("one",), **options) as client:
        await client.wait_until_ready()
        yield client


async def test_a_bearer_token_has_the_rights_it_claims(trusting: ServiceClient) -> None:
    given = {"authorization": f"Bearer {token(lance={'tables': ['open']})}"}
    assert (await trusting.post("/v1/table/open/query", VECTOR, headers=given)).status_code == 200
    answer = await trusting.post("/v1/table/shut/query", VECTOR, headers=given)
    assert (answer.status_code, answer.json()["code"]) == (403, 15)
    assert (await trusting.get("/v1/table", headers=given)).json()["tables"] == ["open"]


@pytest.mark.parametrize(
    ("claims", "status", "code"),
    [
        ({"exp": 1_700_000_000}, 401, 16),
        ({"aud": "another"}, 401, 16),
        ({"exp": 10**400}, 401, 16),
        ({"key_id": "k9"}, 401, 16),
        ({"lance": None}, 403, 15),
    ],
    ids=repr,
)
async def test_a_token_that_does_not_do_is_refused(
    trusting: ServiceClient, claims: Any, status: int, code: int
) -> None:
    given = {"authorization": f"Bearer {token(**claims)}"}
    answer = await trusting.get("/v1/table", headers=given)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    both = given | {"x-api-key": "one"}
    assert (await trusting.get("/v1/table", headers=both)).status_code == 200


async def test_a_new_signing_key_is_looked_for(trusting: ServiceClient, tmp_path: Path) -> None:
    given = {"authorization": f"Bearer {token(algorithm='RS256', key_id='k2')}"}
    assert (await trusting.get("/v1/table", headers=given)).status_code == 401
    (tmp_path / "jwks.json").write_bytes(key_set(public_key("RS256", "k2")))
    assert (await trusting.get("/v1/table", headers=given)).status_code == 200


@pytest.mark.parametrize("suffix", ["yaml", "toml"])
def test_a_new_key_is_printed_once_and_its_digest_kept(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"keys.{suffix}"
    made: list[str] = []
    for options in ([], ["--table", "a$*", "--database", "one", "--write"]):
        name = f"number {len(made)}"
        outcome = CliRunner().invoke(app, ["key", "new", name, "--file", str(file), *options])
        assert outcome.exit_code == 0, outcome.output
        made.append(outcome.stdout.strip())
    found = load_keys(file)
    first, second = (found[digest_of(each)] for each in made)
    assert (first.name, first.tables, first.can_write) == ("number 0", None, False)
    assert (second.beginnings, second.databases, second.can_write) == (
        ("a$",),
        frozenset({"one"}),
        True,
    )
    assert all(len(each) > 40 and each not in file.read_text() for each in made)
    assert os.stat(file).st_mode & 0o077 == 0  # noqa: PTH116 - the mode alone
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_a_new_key_without_a_file_comes_with_its_entry() -> None:
    outcome = CliRunner().invoke(app, ["key", "new", "somebody"])
    assert outcome.exit_code == 0
    entry = yaml.safe_load(outcome.stderr)["keys"][0]
    assert entry == {
        "name": "somebody",
        "sha256": digest_of(outcome.stdout.strip()).removeprefix("sha256:"),
    }


def test_no_key_is_added_to_a_file_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text("colour: blue\n")
    outcome = CliRunner().invoke(app, ["key", "new", "somebody", "--file", str(file)])
    assert outcome.exit_code == 2
    assert "no entry can be added" in outcome.output
    assert file.read_text() == "colour: blue\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("keys: [{name: a, sha256: short}]", "sha256"),
        ("keys: [{sha256: " + "a" * 64 + "}]", "name"),
        ("keys: [{name: a, table: [t], sha256: " + "a" * 64 + "}]", "table"),
        ("keys: {}", "keys"),
        ("", "keys"),
    ],
)
def test_a_file_of_keys_that_is_wrong_says_where(tmp_path: Path, text: str, word: str) -> None:
    file = tmp_path / "keys.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=word):
        load_keys(file)


async def test_a_token_that_quotes_half_a_surrogate_pair_gives_401(
    trusting: ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    head = b'{"alg":"ES256","kid":"k1","crit":["\\ud800"],"\\ud800":1}'
    parts = (urlsafe_b64encode(each).decode().rstrip("=") for each in (head, b"{}", b"abc"))
    caplog.set_level(logging.INFO, "service.request")
    given = {"authorization": f"Bearer {'.'.join(parts)}"}
    answer = await trusting.get("/v1/table", headers=given)
    assert (answer.status_code, answer.json()["code"]) == (401, 16)
    assert "extension" in answer.json()["error"]
    assert json.loads(JsonFormatter().format(caplog.records[0]))["status"] == 401
