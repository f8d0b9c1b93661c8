"""Our answers beside those of the reference server of Lance Namespace, endpoint by endpoint.

It is `lance.namespace.RestAdapter` over the same folder. Where it answers otherwise on purpose or
by mistake, the difference is told here, so that a change of either is noticed.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import httpx
import lance
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter

from tests.client_dataset import BRANCH, write_client_dataset
from tests.live_server import live_server
from tests.pylance_dataset import LIVE, VECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

T1 = "/v1/table/t1"
QUERY = (VECTORS[123] + 0.01).tolist()
NEAR = {
    "vector": {"single_vector": QUERY},
    "vector_column": "vec",
    "k": 5,
    "bypass_vector_index": True,
    "prefilter": True,
}
TEXT = {"string_query": {"query": "newt", "columns": ["text"]}}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reference")
    write_client_dataset(root / "t1.lance")
    lance.write_dataset(pa.table({"a": [1]}), root / "empty_index.lance")
    return root


@pytest.fixture(scope="module")
def servers(root: Path) -> Iterator[Any]:
    """Clients of both, ours first."""
    with live_server(root) as url, RestAdapter("dir", {"root": str(root)}, port=0) as reference:
        theirs = f"http://127.0.0.1:{reference.port}"
        with httpx.Client(base_url=url) as ours, httpx.Client(base_url=theirs) as other:
            yield ours, other


def ask(servers: Any, method: str, path: str, body: Any) -> Any:
    return [
        server.request(method, path, **({} if method == "GET" else {"json": body}))
        for server in servers
    ]


def cut(told: Any, shape: Any) -> Any:
    """Return of an answer what another one has; null is as good as absent."""
    if isinstance(shape, dict) and isinstance(told, dict):
        return {name: cut(told.get(name), value) for name, value in shape.items()}
    if isinstance(shape, list) and isinstance(told, list) and len(shape) == len(told):
        return [cut(mine, theirs) for mine, theirs in zip(told, shape, strict=True)]
    return told


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/table", None),
        ("GET", "/v1/table?limit=1", None),
        ("GET", "/v1/table?page_token=empty_index", None),
        ("GET", "/v1/namespace/$/table/list", None),
        ("GET", "/v1/namespace/%24/table/list?delimiter=%24", None),
        ("GET", "/v1/namespace/$/list", None),
        ("POST", f"{T1}/exists", {}),
        ("POST", "/v1/namespace/$/exists", {}),
        ("POST", f"{T1}/count_rows", {}),
        ("POST", f"{T1}/count_rows", {"predicate": "id < 10"}),
        ("POST", f"{T1}/count_rows", {"version": 1}),
        ("POST", f"{T1}/count_rows", {"branch": BRANCH}),
        ("POST", f"{T1}/tags/list", {}),
        ("POST", f"{T1}/tags/version", {"tag": "first"}),
        ("POST", f"{T1}/tags/version", {"tag": "other"}),
        ("POST", f"{T1}/branches/list", {}),
        ("POST", f"{T1}/index/vec_idx/stats", {}),
    ],
)
def test_answers_are_the_same(servers: Any, method: str, path: str, body: Any) -> None:
    ours, theirs = ask(servers, method, path, body)
    assert ours.status_code == theirs.status_code == 200, theirs.text
    if theirs.content == b"":
        assert ours.content == b""
    else:
        assert cut(ours.json(), theirs.json()) == theirs.json()


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/table/nope/describe", {}, 4),
        ("/v1/table/nope/count_rows", {}, 4),
        ("/v1/table/nope/exists", {}, 4),
        ("/v1/namespace/nope/describe", {}, 1),
        (f"{T1}/count_rows", {"version": 99}, 11),
        (f"{T1}/tags/version", {"tag": "nope"}, 8),
        (f"{T1}/index/nope/stats", {}, 6),
        (f"{T1}/count_rows", {"id": ["other"]}, 13),
    ],
)
def test_errors_have_the_same_code_and_status(
    servers: Any, path: str, body: Any, code: int
) -> None:
    for answer in ask(servers, "POST", path, body):
        assert answer.json()["code"] == code
        assert answer.status_code == (400 if code == 13 else 404)


def test_descriptions_are_the_same(servers: Any) -> None:
    for body in ({"load_detailed_metadata": True}, {"load_detailed_metadata": False}):
        ours, theirs = (answer.json() for answer in ask(servers, "POST", f"{T1}/describe", body))
        theirs.pop("metadata", None)  # figures, which ours has in stats and in coverage
        assert cut(ours, theirs) == theirs


def test_versions_are_the_same(servers: Any) -> None:
    for query in (
        "",
        "?descending=true",
        "?limit=2",
        f"?branch={BRANCH}",
        "?descending=true&limit=3",
    ):
        answers = ask(servers, "POST", f"{T1}/version/list{query}", {})
        ours, theirs = (answer.json()["versions"] for answer in answers)
        assert [each["version"] for each in ours] == [each["version"] for each in theirs]
        for mine, other in zip(ours, theirs, strict=True):
            # theirs is when the file was written, ours when the version was made
            assert abs(mine["timestamp_millis"] - other["timestamp_millis"]) < 1000
            assert mine["manifest_size"] == other["manifest_size"]
            # theirs begins with the folder of the root
            assert other["manifest_path"].endswith(mine["manifest_path"])


def test_indices_are_the_same(servers: Any) -> None:
    ours, theirs = (
        {each["index_name"]: each for each in answer.json()["indexes"]}
        for answer in ask(servers, "POST", f"{T1}/index/list", {})
    )
    assert ours.keys() == theirs.keys()
    for name, other in theirs.items():
        mine = ours[name]
        for member in other.keys() - {"created_at", "index_details", "index_type"}:
            assert mine[member] == other[member], (name, member)
        assert mine["created_at"][:23] == other["created_at"][:23]
        names = {each["index_type"].upper().replace("INVERTED", "FTS") for each in (mine, other)}
        assert len(names) == 1


def rows(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_file(io.BytesIO(answer.content)).read_all()


@pytest.mark.parametrize(
    "body",
    [
        NEAR,
        {**NEAR, "filter": "id >= 500"},
        {**NEAR, "columns": {"column_names": ["price", "id"]}, "with_row_id": True},
        {**NEAR, "columns": {"column_aliases": {"cost": "price"}}},
        {**NEAR, "distance_type": "cosine"},
        {**NEAR, "lower_bound": 0.01, "upper_bound": 20.0, "k": 50},
        {**NEAR, "version": 1},
        {**NEAR, "branch": BRANCH},
        {**NEAR, "bypass_vector_index": False, "nprobes": 4, "refine_factor": 30},
        {"vector": {}, "k": 7, "prefilter": True},
        {"vector": {}, "k": 7, "offset": 3, "filter": "price > 5", "prefilter": True},
        {"vector": {}, "k": 1000, "full_text_query": TEXT, "prefilter": True},
        {"vector": {}, "k": 1000, "full_text_query": TEXT, "filter": "id < 50", "prefilter": True},
    ],
    ids=lambda body: " ".join(str(name) for name in body),
)
def test_queries_find_the_same(servers: Any, body: Any) -> None:
    ours, theirs = (rows(answer) for answer in ask(servers, "POST", f"{T1}/query", body))
    assert ours.schema.names == theirs.schema.names
    assert ours.num_rows == theirs.num_rows
    key = "cost" if "cost" in ours.schema.names else "id"
    if "full_text_query" in body:
        assert set(ours[key].to_pylist()) == set(theirs[key].to_pylist())
        return
    assert ours[key].to_pylist() == theirs[key].to_pylist()
    if "_distance" in ours.schema.names:
        assert ours["_distance"].to_pylist() == pytest.approx(
            theirs["_distance"].to_pylist(), abs=1e-4
        )


def test_plans_are_texts_in_both(servers: Any) -> None:
    for action, body in (("explain_plan", {"query": NEAR}), ("analyze_plan", NEAR)):
        for answer in ask(servers, "POST", f"{T1}/{action}", body):
            assert isinstance(answer.json(), str), answer.text


def test_what_the_reference_server_does_otherwise(servers: Any) -> None:
    figures, theirs = (answer.json() for answer in ask(servers, "POST", f"{T1}/stats", {}))
    assert figures["num_rows"] == len(LIVE)
    assert theirs["num_rows"] > len(LIVE), "it counts deleted rows"
    assert figures["fragment_stats"] == theirs["fragment_stats"]
    # it skips after ranking k rows, so fewer come back
    ours, other = (
        rows(each) for each in ask(servers, "POST", f"{T1}/query", {**NEAR, "offset": 2})
    )
    assert (ours.num_rows, other.num_rows) == (5, 3)
    # mistakes of the caller are its own
    bad = ask(servers, "POST", f"{T1}/query", {**NEAR, "filter": "nope > 1"})
    assert [answer.status_code for answer in bad] == [400, 500]
    # it needs a body where LanceDB's clients send none
    assert [server.post(f"{T1}/describe").status_code for server in servers] == [200, 400]
