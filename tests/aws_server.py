"""An S3 and DynamoDB server on loopback, for tests: moto behind werkzeug.

moto checks the condition of a conditional put and then writes, in two steps; puts, of objects and
of rows, are therefore served one at a time.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
import httpx
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-east-1"
_CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}


@dataclass(frozen=True, slots=True)
class AwsServer:
    """Where the server listens, and how stores and clients reach it.

    ``key_ids`` are those that requests were signed with; none is refused.
    """

    endpoint: str
    key_ids: set[str]

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            **_CREDENTIALS,
            "aws_region": REGION,
            "aws_endpoint": self.endpoint,
            "dynamodb_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def client(self, service: str):
        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION, **_CREDENTIALS)

    def create_bucket(self, name: str) -> None:
        self.client("s3").create_bucket(Bucket=name)

    def create_manifest_table(self, name: str) -> None:
        self.client("dynamodb").create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": "base_uri", "KeyType": "HASH"},
                {"AttributeName": "version", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "base_uri", "AttributeType": "S"},
                {"AttributeName": "version", "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )


class _OnePutAtATime:
    def __init__(self, app) -> None:
        self._app = app
        self._lock = threading.Lock()
        self.key_ids: set[str] = set()

    def __call__(self, environ, start_response):
        signed = re.search("Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        if signed is not None:
            self.key_ids.add(signed[1])
        puts_row = environ.get("HTTP_X_AMZ_TARGET", "").endswith(".PutItem")
        if environ["REQUEST_METHOD"] != "PUT" and not puts_row:
            return self._app(environ, start_response)
        with self._lock:
            return list(self._app(environ, start_response))


@contextmanager
def aws_server() -> Iterator[AwsServer]:
    """Run a server, empty at first, until the end of the block.

    What moto holds belongs to the process, so it is forgotten for the next server.
    """
    app = _OnePutAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield AwsServer(endpoint, app.key_ids)
    finally:
        httpx.post(f"{endpoint}/moto-api/reset").raise_for_status()
        server.shutdown()
        thread.join()
        server.server_close()
