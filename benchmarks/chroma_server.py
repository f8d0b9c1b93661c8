"""Chroma's server from an environment of its own: the peer of bar 9."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import orjson

from benchmarks.datasets import cache_root
from benchmarks.servers import HOST, free_port, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.servers import Server

VERSION = "1.5.9"
_COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
_HEARTBEAT = "/api/v2/heartbeat"
_ROWS_A_REQUEST = 2_000


class Collection:
    """A collection of a running server.

    Parameters
    ----------
    server
        Where it is.
    name
        Made with the server's own defaults for graphs where it is not there yet.
    """

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        configuration = {"hnsw": {"space": "l2"}}
        body = {"name": name, "configuration": configuration, "get_or_create": True}
        self._path = f"{_COLLECTIONS}/{self._ask(_COLLECTIONS, body)['id']}"

    def count(self) -> int:
        """Return the number of rows."""
        with urlopen(self._url(f"{self._path}/count"), timeout=60) as answer:  # noqa: S310 - local
            return int(orjson.loads(answer.read()))

    def add(self, vectors: NDArray[np.float32], values: NDArray[np.int64]) -> None:
        """Add rows with consecutive ids, and their values of ``u`` to filter by."""
        for first in range(0, len(vectors), _ROWS_A_REQUEST):
            part = slice(first, first + _ROWS_A_REQUEST)
            numbers = range(first, first + len(vectors[part]))
            body = {
                "ids": [str(number) for number in numbers],
                "embeddings": vectors[part],
                "metadatas": [{"u": value} for value in values[part].tolist()],
            }
            self._ask(f"{self._path}/add", body)

    def find(self, query: NDArray[np.float32], k: int) -> list[int]:
        """Return the ids of the nearest rows."""
        found = self._ask(f"{self._path}/query", _query_body(query, k, {}))
        return [int(each) for each in found["ids"][0]]

    def request(
        self, query: NDArray[np.float32], k: int, where: Mapping[str, object] | None = None
    ) -> bytes:
        """Return a complete HTTP request, as `benchmarks.load` sends them."""
        body = orjson.dumps(
            _query_body(query, k, {} if where is None else {"where": where}),
            option=orjson.OPT_SERIALIZE_NUMPY,
        )
        head = (
            f"POST {self._path}/query HTTP/1.1\r\nhost: localhost\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def _ask(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401 - JSON
        data = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        headers = {"content-type": "application/json"}
        with urlopen(Request(self._url(path), data, headers), timeout=120) as answer:  # noqa: S310
            return orjson.loads(answer.read())

    def _url(self, path: str) -> str:
        return f"http://{HOST}:{self._server.port}{path}"


def _query_body(
    query: NDArray[np.float32], k: int, further: Mapping[str, object]
) -> dict[str, object]:
    return {"query_embeddings": [query], "n_results": k, "include": ["distances"], **further}


@contextmanager
def start_chroma(data: Path, log: Path) -> Iterator[Server]:
    """Run Chroma's server over a folder; it is installed first where the cache has it not."""
    command = _installed() / "bin" / "chroma"
    port = free_port()
    options = ["run", "--path", str(data), "--host", HOST, "--port", str(port)]
    with running([str(command), *options], port, {}, log, ready=_HEARTBEAT) as server:
        yield server


def _installed() -> Path:
    environment = cache_root() / "chroma"
    stamp = environment / f"chromadb-{VERSION}"
    if not stamp.exists():
        print(f"installing chromadb {VERSION} into {environment}", flush=True)
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(environment)],
            [str(environment / "bin" / "pip"), "install", "--quiet", f"chromadb=={VERSION}"],
        ):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        stamp.touch()
    return environment
