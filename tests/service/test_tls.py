"""The service over TLS."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.certificates import Authority
from tests.fake_dataset import FakeDataset, FakeStore, make_table
from tests.live_server import live_server

if TYPE_CHECKING:
    from pathlib import Path

BODY = {"vector": [1, 2, 3, 4], "k": 3}


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


@pytest.mark.parametrize("is_asked", [False, True])
def test_tls_is_spoken_and_certificates_of_callers_are_asked_for(
    tmp_path: Path, is_asked: Any
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.0.0.1")
    stranger, known = trusting(authority), trusting(authority)
    known.load_cert_chain(*authority.issue("somebody"))
    options: dict[str, Any] = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    if is_asked:
        options |= {"ssl_ca_certs": str(authority.file), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    store = FakeStore(t1=FakeDataset(make_table()))
    with live_server(
        tmp_path, open_dataset=store, load_kernels=lambda: None, verify=known, **options
    ) as url:
        path = f"{url}/v1/table/t1/query?format=json"
        with httpx.Client(verify=known) as client:
            for _ in range(3):
                assert client.post(path, json=BODY).json()["num_rows"] == 3
            large = client.post(f"{url}/v1/table/t1/query", json={"k": 2**63 - 1})
            assert large.content.endswith(b"ARROW1")
        if is_asked:
            with pytest.raises(httpx.TransportError):
                httpx.post(path, json=BODY, verify=stranger)
        else:
            assert httpx.post(path, json=BODY, verify=stranger).status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.post(path.replace("https:", "http:"), json=BODY)
