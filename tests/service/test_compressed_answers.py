"""JSON compressed where it is worth it, Arrow buffers where asked for; ends prove completeness."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import lance
import orjson
import pyarrow as pa
import pytest

from service.api.negotiation import accepts_gzip
from tests.pylance_dataset import LIVE
from tests.service_client import ARROW_FILE, ARROW_STREAM, Contract, read_arrow, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.service_client import ServiceClient

QUERY = "/v1/table/t1/query"
ALL = {"k": 2**62, "columns": ["id", "kind"]}


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (None, False),
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("br, gzip; q=0.5", True),
        ("x-gzippy", False),
    ],
)
def test_gzip_is_sent_to_those_who_accept_it(header: str | None, allowed: Any) -> None:
    assert accepts_gzip(header) is allowed


async def get(client: ServiceClient, method: str, path: str, body: Any, encoding: str) -> Any:
    content = orjson.dumps(body)
    headers = {"accept-encoding": encoding}
    request = client.http.build_request(method, path, content=content, headers=headers)
    answer = await client.http.send(request, stream=True)
    raw = b"".join([piece async for piece in answer.aiter_raw()])
    return answer, raw


@pytest.fixture
async def wide(tmp_path: Path, contract: Contract) -> AsyncIterator[Any]:
    """A table of so many columns and versions that all that is told of it is long."""
    table = pa.table({f"column_{number}": range(10) for number in range(100)})
    for _ in range(20):
        lance.write_dataset(table, tmp_path / "t1.lance", mode="overwrite")
    async with serving(tmp_path, contract=contract, load_kernels=lambda: None) as client:
        await client.wait_until_ready()
        yield client


@pytest.mark.interop
@pytest.mark.parametrize("path", ["describe", "version/list", "query?format=json"])
async def test_long_json_is_compressed_for_those_who_accept_it(
    wide: ServiceClient, path: str
) -> None:
    path, body = f"/v1/table/t1/{path}", {"k": 100}
    plain_answer, plain = await get(wide, "POST", path, body, "identity")
    answer, raw = await get(wide, "POST", path, body, "gzip")
    assert "content-encoding" not in plain_answer.headers
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == plain_answer.headers["vary"] == "accept-encoding"
    assert int(answer.headers["content-length"]) == len(raw) < len(plain)
    told, expected = orjson.loads(gzip.decompress(raw)), orjson.loads(plain)
    for each in (told, expected):
        each.pop("stats", None)  # with times
    assert told == expected


@pytest.mark.interop
async def test_short_json_is_not_compressed(served: ServiceClient) -> None:
    answer, raw = await get(served, "POST", "/v1/table/t1/stats", {}, "gzip")
    assert "content-encoding" not in answer.headers
    assert orjson.loads(raw)["num_rows"] == len(LIVE)


@pytest.mark.interop
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize(
    ("wish", "media_type"), [("arrow", ARROW_FILE), ("arrow_stream", ARROW_STREAM)]
)
async def test_arrow_buffers_are_compressed_on_request(
    served: ServiceClient, compression: str, wish: str, media_type: str
) -> None:
    plain = await served.post(f"{QUERY}?format={wish}", ALL)
    small = await served.post(f"{QUERY}?format={wish}&compression={compression}", ALL)
    assert small.headers["content-type"] == media_type
    assert len(small.content) < len(plain.content)
    assert read_arrow(small) == read_arrow(plain)
    assert read_arrow(small).num_rows == len(LIVE)


@pytest.mark.interop
async def test_an_unknown_compression_gives_400(served: ServiceClient) -> None:
    answer = await served.post(f"{QUERY}?compression=brotli", ALL)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "lz4, zstd" in answer.json()["error"]


@pytest.mark.interop
@pytest.mark.parametrize("wish", ["arrow", "arrow_stream", "json"])
async def test_a_part_of_an_answer_is_never_taken_for_the_whole(
    served: ServiceClient, wish: str
) -> None:
    """Each form ends with what only a whole answer has."""
    whole = (await served.post(f"{QUERY}?format={wish}", ALL)).content
    for cut in (1, len(whole) // 3, len(whole) - 8):
        part = whole[:-cut]
        if wish == "json":
            with pytest.raises(orjson.JSONDecodeError):
                orjson.loads(part)
        elif wish == "arrow":
            with pytest.raises((pa.ArrowInvalid, OSError)):
                pa.ipc.open_file(io.BytesIO(part)).read_all()
        else:
            assert not part.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    if wish == "arrow_stream":
        assert whole.endswith(b"\xff\xff\xff\xff\0\0\0\0")
