"""openapi.yaml is what the application says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from lance_core.query.hybrid_request import HybridQuery
from lance_core.query.request import ScanQuery, VectorQuery
from lance_core.query.text_request import TextQuery
from service.api.query_bodies import parse_query
from service.api.routes.query_examples import QUERY_EXAMPLES
from service.cli.main import app
from service.limits import QueryLimits
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
    for reference in _references(document):
        kind, name = reference.removeprefix("#/components/").split("/")
        assert name in document["components"][kind]


def test_examples_fit_their_schemas() -> None:
    document = yaml.safe_load(OPENAPI_FILE.read_text())
    components = document["components"]
    shown = [(name, s["examples"]) for name, s in components["schemas"].items() if "examples" in s]
    assert len(shown) > 25
    for name, examples in shown:
        schema = {"$ref": f"#/components/schemas/{name}", "components": components}
        for value in examples:
            Draft202012Validator(schema).validate(value)
    problem = components["responses"]["Problem"]["content"]["application/json"]
    for example in problem["examples"].values():
        Draft202012Validator({**problem["schema"], "components": components}).validate(
            example["value"]
        )


def test_everything_is_described() -> None:
    document = yaml.safe_load(OPENAPI_FILE.read_text())
    assert all(s["description"] for s in document["components"]["schemas"].values())
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["description"], path
            assert "default" in operation["responses"], path
            for parameter in operation.get("parameters", []):
                assert "$ref" in parameter or parameter["description"], (path, parameter)


@pytest.mark.parametrize("name", QUERY_EXAMPLES)
def test_examples_of_queries_are_queries_and_fit_their_schema(name: str) -> None:
    document = yaml.safe_load(OPENAPI_FILE.read_text())
    content = document["paths"]["/v1/table/{id}/query"]["post"]["requestBody"]["content"]
    shown = content["application/json"]["examples"][name]["value"]
    schema = {"$ref": "#/components/schemas/QueryBody", "components": document["components"]}
    Draft202012Validator(schema).validate(shown)
    kinds = {"vector": VectorQuery, "hybrid": HybridQuery, "plain": ScanQuery}
    query = parse_query(shown, limits=QueryLimits(max_k=10))
    assert isinstance(query.request, kinds.get(name, TextQuery))


def _references(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
