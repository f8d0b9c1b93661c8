"""Requests made from openapi.yaml, right and wrong ones: no server fault, answers as described."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.client_dataset import write_client_dataset
from tests.live_server import live_server
from tests.service_client import OPENAPI_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.interop

CASES = int(os.environ.get("SCHEMATHESIS_CASES", "8"))
"""Per operation; 10,000 cases in all are some 350."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


_FOUND: list[Any] = list(schemathesis.openapi.from_path(OPENAPI_FILE).get_all_operations())
OPERATIONS = {found.ok().label: found.ok() for found in _FOUND}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("described")
    write_client_dataset(root / "t1.lance")
    write_client_dataset(root / "a" / "t2.lance")
    with live_server(root, query_timeout_s=5) as url:
        yield url


def aim(case: Any) -> None:
    """Let most identifiers be those of tables that are there, else nothing else is looked at."""
    named = case.path_parameters or {}
    for name, known in (("id", "t1" if "table/{id}" in case.path else "a"), ("name", "vec_idx")):
        if name in named and zlib.crc32(str(named[name]).encode()) % 4 != 0:
            named[name] = known


@pytest.mark.parametrize("label", OPERATIONS)
def test_answers_are_as_described(url: str, label: str) -> None:
    @settings(
        max_examples=CASES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(
        case=OPERATIONS[label].as_strategy()
        | OPERATIONS[label].as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def check(case: Any) -> None:
        aim(case)
        answer = case.call(base_url=url, timeout=30)
        case.validate_response(answer, checks=CHECKS)

    check()
