"""Requests to the application in process, every one checked against openapi.yaml."""

from __future__ import annotations

import asyncio
import io
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import pyarrow as pa
import yaml
from jsonschema import Draft202012Validator

from service.api.not_yet import LATER_PATHS
from service.app import create_app
from service.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

OPENAPI_FILE = Path(__file__).parents[1] / "openapi.yaml"
ARROW_FILE = "application/vnd.apache.arrow.file"
ARROW_STREAM = "application/vnd.apache.arrow.stream"


class Contract:
    """What openapi.yaml says about requests and answers."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._paths = [
            (re.compile("^" + re.sub(r"\{\w+\}", "[^/]+", path) + "/?$"), item)
            for path, item in document["paths"].items()
        ]

    def check_request(self, request: Any, body: Any) -> None:
        operation = self._operation(request)
        if operation is not None and "requestBody" in operation and body != b"":
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self._validate(orjson.loads(body), schema)

    def check_answer(self, request: Any, answer: Any) -> Any:
        assert answer.headers["phalanx-version"] == "0.3.0"
        assert answer.headers["x-request-id"] != ""
        operation = self._operation(request)
        if answer.status_code == 304:
            assert answer.content == b""
            return None
        if answer.status_code != 200 or operation is None:
            return self._check_problem(answer)
        content = operation["responses"]["200"].get("content")
        if content is None:
            assert answer.content == b""
            return None
        media_type = answer.headers["content-type"]
        assert media_type in content
        if media_type == "application/json":
            self._validate(orjson.loads(answer.content), content[media_type]["schema"])
        return None

    def _check_problem(self, answer: Any) -> None:
        assert answer.status_code >= 400
        assert answer.headers["content-type"] == "application/json"
        body = orjson.loads(answer.content)
        self._validate(body, {"$ref": "#/components/schemas/ProblemBody"})
        assert body["status"] == answer.status_code
        assert body["instance"] == answer.headers["x-request-id"]

    def _operation(self, request: Any) -> Any:
        path = request.url.raw_path.decode().partition("?")[0]
        for pattern, item in self._paths:
            if pattern.match(path) is not None:
                return item.get(request.method.lower())
        return None

    def _validate(self, value: Any, schema: Any) -> None:
        Draft202012Validator({**schema, "components": self._document["components"]}).validate(value)


def load_contract() -> Any:
    return Contract(yaml.safe_load(OPENAPI_FILE.read_text()))


class ServiceClient:
    """Sends requests; ``bad=True`` marks a body that the contract forbids on purpose."""

    def __init__(self, app: Any, contract: Contract) -> None:
        self.app = app
        self._contract = contract
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://service")

    async def send(
        self, method: str, path: str, body: Any = b"", *, bad: Any = False, headers: Any = None
    ) -> Any:
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        request = self.http.build_request(method, path, content=content, headers=headers)
        if not bad:
            self._contract.check_request(request, content)
        answer = await self.http.send(request)
        self._contract.check_answer(request, answer)
        return answer

    async def get(self, path: str, **options: Any) -> Any:
        return await self.send("GET", path, **options)

    async def post(self, path: str, body: Any = b"", **options: Any) -> Any:
        return await self.send("POST", path, body, **options)

    async def wait_until_ready(self) -> None:
        for _ in range(3000):
            if (await self.get("/ready")).status_code == 200:
                return
            await asyncio.sleep(0.01)
        raise TimeoutError("the service did not get ready")


@asynccontextmanager
async def serving(
    root: Path | None,
    *,
    contract: Contract,
    open_dataset: Any = None,
    load_kernels: Any = None,
    tracing: Any = None,
    **settings: Any,
) -> AsyncIterator[Any]:
    """Run the application and give a client for it; without a root, settings name databases."""
    options = {} if load_kernels is None else {"load_kernels": load_kernels}
    app = create_app(
        Settings(root=None if root is None else str(root), **settings),
        open_dataset=open_dataset,
        tracing=tracing,
        **options,
    )
    async with app.router.lifespan_context(app):
        client = ServiceClient(app, contract)
        async with client.http:
            yield client


async def until(condition: Callable[[], bool]) -> None:
    """Wait until another thread has made a condition true."""
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError("the condition did not come true")


def read_arrow(answer: Any) -> Any:
    """Return the table in an Arrow answer, by its content type."""
    open_body = {ARROW_FILE: pa.ipc.open_file, ARROW_STREAM: pa.ipc.open_stream}
    return open_body[answer.headers["content-type"]](io.BytesIO(answer.content)).read_all()


def later_requests() -> Iterator[Any]:
    """Yield method and concrete path of everything that later releases serve."""
    for method, path in LATER_PATHS:
        yield method, path.replace("{id}", "t1").replace("{name}", "vec_idx")
