"""OpenAPI for routes that read their bodies themselves.

The hot routes take the raw request: letting the framework build models of every number in a vector
costs more than the search. What it would have documented is said here instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

from service.api.documented_parts import (
    EXAMPLES,
    HEADERS,
    OF_ALL,
    OF_TABLES,
    PROBLEM,
    header_references,
)
from service.api.models import answers, console, figures, requests

if TYPE_CHECKING:
    from pydantic import BaseModel

_REFERENCE = "#/components/schemas/{model}"
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "Namespace parts and table name joined by the delimiter; `$` = the root.",
}
_INDEX = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "Name of an index.",
}
_PROBLEM = {"$ref": "#/components/responses/Problem"}
_NOT_MODIFIED = {"description": "The answer is that of which `if-none-match` names the tag."}
_BODIES: tuple[type[BaseModel], ...] = (
    requests.IdBody,
    requests.VersionedBody,
    requests.DescribeBody,
    requests.CountBody,
    requests.QueryBody,
    requests.AnalyzeBody,
    requests.ExplainBody,
    requests.IndexListBody,
    requests.PrewarmBody,
    requests.WhyNotBody,
    requests.TagBody,
    requests.PageCacheBody,
    requests.RecallBody,
    console.EmbedBody,
)
_ANSWERS: tuple[type[BaseModel], ...] = (
    answers.Tables,
    answers.Namespaces,
    answers.NamespaceDescription,
    answers.TableDescription,
    answers.Versions,
    answers.Rows,
    answers.Stats,
    answers.Indices,
    answers.IndexStatistics,
    answers.PrewarmAnswer,
    answers.PlanAnswer,
    answers.WhyNotAnswer,
    figures.NamespaceTags,
    figures.TagVersion,
    figures.Branches,
    figures.TableStatistics,
    figures.Coverage,
    figures.RecallAnswer,
    figures.PageCacheAnswer,
    answers.ProblemBody,
    answers.Welcome,
    answers.Health,
    answers.Readiness,
    console.CacheContents,
    console.TextModels,
    console.EmbeddedText,
)


def documented(
    *,
    answer: type[BaseModel] | dict[str, Any] | None = None,
    body: type[BaseModel] | None = None,
    parameters: type[BaseModel] | None = None,
    examples: dict[str, dict[str, object]] | None = None,
    has_id: bool = True,
    has_index: bool = False,
    has_tag: bool = False,
) -> dict[str, Any]:
    """Return the ``openapi_extra`` of a route.

    Parameters
    ----------
    answer
        Model of the 200 answer, or its ``content`` object; None = no body.
    body, parameters
        Models of the JSON body, which may be left out, and of the query parameters.
    examples
        Bodies by name, each with a ``summary`` and its ``value``.
    has_id
        Whether the path holds an identifier.
    has_index
        Whether the path holds the name of an index.
    has_tag
        Whether answers have an ``etag``, and 304 is answered to who has them.
    """
    responses = {"200": _success(answer), "default": _PROBLEM}
    if has_tag:
        responses["304"] = _NOT_MODIFIED
    in_path = ([_ID] if has_id else []) + ([_INDEX] if has_index else [])
    headers = (*OF_ALL, *(OF_TABLES if has_id else ()), *(("IfNoneMatch",) if has_tag else ()))
    extra: dict[str, Any] = {
        "responses": responses,
        "parameters": [
            *in_path,
            *([] if parameters is None else _query_parameters(parameters)),
            *header_references(*headers),
        ],
    }
    if body is not None:
        content: dict[str, object] = {"schema": _reference(body)}
        if examples is not None:
            content["examples"] = examples
        extra["requestBody"] = {"required": False, "content": {"application/json": content}}
    return extra


def build_openapi(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the models that routes refer to, and without invented answers."""
    _, definitions = models_json_schema(
        [(model, "validation") for model in (*_BODIES, *_ANSWERS)], ref_template=_REFERENCE
    )
    components = plain.setdefault("components", {})
    schemas = {**components.get("schemas", {}), **definitions["$defs"]}
    for name, value in EXAMPLES.items():
        schemas[name] = {**schemas[name], "examples": [value]}
    components["schemas"] = schemas
    components["responses"] = {"Problem": PROBLEM}
    components["parameters"] = HEADERS
    components["securitySchemes"] = {
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
        "bearer": {"type": "http", "scheme": "bearer"},
    }
    plain["security"] = [{}, {"key": []}, {"bearer": []}]
    return plain


def _success(answer: type[BaseModel] | dict[str, Any] | None) -> dict[str, Any]:
    if answer is None:
        return {"description": "Done."}
    if isinstance(answer, dict):
        return {"description": "The answer.", "content": answer}
    content = {"application/json": {"schema": _reference(answer)}}
    return {"description": "The answer.", "content": content}


def reference_to(model: type[BaseModel]) -> str:
    """Return what refers to a model in the document."""
    return _REFERENCE.format(model=model.__name__)


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": reference_to(model)}


def _query_parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    properties = model.model_json_schema()["properties"]
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": {k: v for k, v in schema.items() if k not in {"title", "description"}},
            "description": schema.get("description", ""),
        }
        for name, schema in properties.items()
    ]
