"""Work of real searches ends soon after nobody waits for it, and in time."""

from __future__ import annotations

import logging
import socket
import statistics
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pytest

import lance_core
from tests.live_server import live_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERY = "/v1/table/big/query"
NUM_ROWS, DIMENSION = 100_000, 128


@pytest.fixture(scope="module")
def big_root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with one dataset whose exact scans take long."""
    folder = tmp_path_factory.mktemp("big")
    vectors = np.random.default_rng(1).random(NUM_ROWS * DIMENSION, np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION)
    rows = pa.table({"id": np.arange(NUM_ROWS), "vec": column, "text": ["a b"] * NUM_ROWS})
    lance_core.write_dataset(str(folder / "big.lance"), rows)
    return folder


@pytest.fixture(scope="module")
def url(big_root: Path) -> Iterator[Any]:
    with live_server(big_root) as url:
        body = {"vector": [0.5] * DIMENSION, "bypass_vector_index": True}
        assert httpx.post(url + QUERY, json=body, timeout=60).status_code == 200
        yield url


def slow_bodies() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    many = rng.random((3_000, DIMENSION)).astype(np.float32).tolist()
    return {
        "exact": {"vector": many, "bypass_vector_index": True, "k": 10, "columns": ["id"]},
        "filtered": {
            "vector": many,
            "filter": "id % 2 = 1",
            "bypass_vector_index": True,
            "columns": ["id"],
        },
    }


class Ended:
    """When the work of a request ended: its line is written just then."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "service.request")
        self._caplog = caplog

    def wait(self) -> tuple[float, dict[str, Any]]:
        for _ in range(6000):
            for record in self._caplog.records:
                if record.name == "service.request":
                    fields: dict[str, Any] = vars(record)["fields"]
                    return record.created, fields
            time.sleep(0.005)
        raise TimeoutError


@pytest.mark.parametrize("kind", ["exact", "filtered"])
def test_a_long_exact_search_stops_when_its_client_leaves(
    url: str, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    parts = urlsplit(url)
    body = orjson.dumps(slow_bodies()[kind])
    took = []
    for _ in range(3):
        caplog.clear()
        ended = Ended(caplog)
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            head = f"POST {QUERY} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            time.sleep(0.3)
        left = time.time()
        at, fields = ended.wait()
        assert (fields["status"], fields["error_type"]) == (499, "CancelledByClientError")
        took.append(at - left)
    assert statistics.median(took) < 0.1  # 0.02 where nothing else runs


@pytest.mark.parametrize("kind", ["exact", "filtered"])
def test_a_long_exact_search_ends_at_its_deadline(url: str, kind: str) -> None:
    late = []
    body = orjson.dumps(slow_bodies()[kind] | {"timeout_ms": 300})
    for _ in range(3):
        started = time.monotonic()
        answer = httpx.post(url + QUERY, content=body, timeout=60)
        assert (answer.status_code, answer.json()["code"]) == (408, 17)
        late.append(time.monotonic() - started - 0.3)
    assert statistics.median(late) < 0.2
