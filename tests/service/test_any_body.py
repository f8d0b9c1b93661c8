"""Whatever a body holds, the answer is a documented one and never a server fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import lance_core
from tests.fake_dataset import make_table
from tests.live_server import live_server

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = [
    "vector", "k", "offset", "columns", "version", "branch", "nprobes", "minimum_nprobes",
    "maximum_nprobes", "refine_factor", "lower_bound", "upper_bound", "with_row_id", "ef",
    "distance_type", "timeout_ms", "max_staleness_ms", "id", "query", "verbose", "filter",
    "vector_column", "bypass_vector_index", "fast_search", "prefilter", "load_detailed_metadata",
]  # fmt: skip

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["id", "vec", "l2", "main", "", "_rowid", "\ud7ff\x00"])
)
values = st.recursive(
    scalars | st.lists(st.floats(-10, 10), min_size=4, max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
plausible = st.fixed_dictionaries(
    {"vector": st.lists(st.floats(-10, 10), min_size=4, max_size=4)},
    optional={name: scalars for name in NAMES if name != "vector"},
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    root = tmp_path_factory.mktemp("root")
    lance_core.write_dataset(root / "t1.lance", make_table())
    with live_server(root) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.mark.parametrize(
    "action",
    ["query", "query?format=json", "explain_plan", "analyze_plan", "describe", "count_rows",
     "version/list", "exists"],
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies | plausible)
def test_any_json_object_gets_a_documented_answer(
    client: httpx.Client, action: str, body: dict[str, Any]
) -> None:
    answer = client.post(f"/v1/table/t1/{action}", json=body)
    assert answer.status_code in {200, 400, 404, 406, 408}
    if answer.status_code != 200:
        assert answer.json()["status"] == answer.status_code
        assert answer.json()["error"] != ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=60))
def test_any_bytes_get_a_documented_answer(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/v1/table/t1/query", content=body)
    assert answer.status_code == (200 if body == b"" else 400)
