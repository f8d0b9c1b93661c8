"""openapi.yaml is what the application says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from service.cli.main import app
from tests.service_client import OPENAPI_FILE, ServiceClient

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_openapi_yaml_equals_what_the_command_prints() -> None:
    printed = CliRunner().invoke(app, ["openapi"])
    assert printed.exit_code == 0
    assert printed.stdout == OPENAPI_FILE.read_text(), "run: make openapi"


async def test_openapi_yaml_equals_what_the_service_serves(client: ServiceClient) -> None:
    served = (await client.http.get("/openapi.json")).json()
    assert served == yaml.safe_load(OPENAPI_FILE.read_text())


def test_all_schemas_are_valid_and_all_references_lead_somewhere() -> None:
    document = yaml.safe_load(OPENAPI_FILE.read_text())
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    names = document["components"]["schemas"]
    for reference in _references(document):
        assert reference.removeprefix("#/components/schemas/") in names


def _references(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
