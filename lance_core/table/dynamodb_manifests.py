"""Which versions are committed, kept in a table of DynamoDB that other Lance writers share."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from lance_core.errors import (
    CorruptFileError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
)
from lance_core.table.external_manifests import ManifestRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_COMMITTER = "lance-serve"
ENDPOINT_OPTION = "dynamodb_endpoint"
"""The storage option for another address than Amazon's; the environment variable is upper case."""

_IS_NEW = "attribute_not_exists(base_uri) AND attribute_not_exists(version)"
_IS_THERE = "attribute_exists(base_uri) AND attribute_exists(version)"

_CONDITION_FAILED = "ConditionalCheckFailedException"
_THROTTLED = frozenset(
    (
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionConflictException",
    )
)
_PASSING = frozenset(("InternalServerError", "ServiceUnavailable", "RequestTimeout"))
_CLIENT_OPTIONS = {
    "region_name": ("aws_region", "region", "aws_default_region", "default_region"),
    "aws_access_key_id": ("aws_access_key_id", "access_key_id"),
    "aws_secret_access_key": ("aws_secret_access_key", "secret_access_key"),
    "aws_session_token": ("aws_session_token", "session_token", "aws_token", "token"),
}
"""What boto3 calls an option, and what storage options call it; else the environment decides."""


class DynamoManifests:
    """A `ManifestStore` in one table, which may hold any number of datasets.

    Parameters
    ----------
    client
        A boto3 client of DynamoDB.
    table
        Name of the table: its hash key is ``base_uri``, a text, its range key ``version``, a
        number.

    Notes
    -----
    Lance table format, section "External manifest store"; shared with pylance 14.0.2.
    """

    def __init__(self, client: Any, table: str) -> None:  # noqa: ANN401 - boto3 makes its classes
        self._client = client
        self._table = table

    @classmethod
    def open(cls, table: str, storage_options: Mapping[str, str]) -> DynamoManifests:
        """Make the client; nothing is read.

        Parameters
        ----------
        table
            Name of the table.
        storage_options
            Region, keys and ``dynamodb_endpoint``, as pylance names them; what is left out comes
            from the environment.

        Raises
        ------
        InvalidRequestError
            boto3 is not installed, or does not accept an option.
        """
        try:
            import boto3  # noqa: PLC0415 - an extra
            from botocore.exceptions import BotoCoreError  # noqa: PLC0415
        except ImportError as error:
            raise InvalidRequestError(
                's3+ddb:// needs boto3; install it by: pip install "lance-serve[s3]"'
            ) from error
        options = {name.lower(): value for name, value in storage_options.items()}
        arguments = {
            argument: next((options[name] for name in names if name in options), None)
            for argument, names in _CLIENT_OPTIONS.items()
        }
        endpoint = options.get(ENDPOINT_OPTION, os.environ.get(ENDPOINT_OPTION.upper()))
        try:
            client = boto3.client("dynamodb", endpoint_url=endpoint, **arguments)
        except (BotoCoreError, ValueError) as error:
            raise InvalidRequestError(f"DynamoDB cannot be reached so: {error}") from error
        return cls(client, table)

    def latest(self, base_uri: str) -> ManifestRow | None:
        """Return the row of the newest version of a dataset, None if there is none.

        Raises
        ------
        CorruptFileError
            The row does not say where the manifest lies.
        """
        with self._translated(base_uri):
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="base_uri = :base",
                ExpressionAttributeValues={":base": {"S": base_uri}},
                ScanIndexForward=False,
                Limit=1,
                ConsistentRead=True,
            )
        items = answer["Items"]
        return None if len(items) == 0 else self._row(base_uri, items[0])

    def put_if_absent(self, base_uri: str, row: ManifestRow) -> None:
        """Add a row, or raise ``ObjectExistsError`` if the version has one."""
        with self._translated(base_uri, ObjectExistsError(f"version {row.version} of {base_uri}")):
            self._put(base_uri, row, _IS_NEW)

    def put_if_present(self, base_uri: str, row: ManifestRow) -> None:
        """Replace the row of a version, or raise ``ObjectNotFoundError`` if it has none."""
        missing = ObjectNotFoundError(f"version {row.version} of {base_uri}")
        with self._translated(base_uri, missing):
            self._put(base_uri, row, _IS_THERE)

    def _put(self, base_uri: str, row: ManifestRow, condition: str) -> None:
        item = {
            "base_uri": {"S": base_uri},
            "version": {"N": str(row.version)},
            "path": {"S": row.path},
            "committer": {"S": _COMMITTER},
        }
        if row.size is not None:
            item["size"] = {"N": str(row.size)}
        self._client.put_item(TableName=self._table, Item=item, ConditionExpression=condition)

    def _row(self, base_uri: str, item: Mapping[str, Any]) -> ManifestRow:
        try:
            size = item.get("size")
            return ManifestRow(
                version=int(item["version"]["N"]),
                path=item["path"]["S"],
                size=None if size is None else int(size["N"]),
            )
        except (KeyError, ValueError, TypeError) as error:
            raise CorruptFileError(
                base_uri, f"its row in the DynamoDB table {self._table} is none of Lance's: {item}"
            ) from error

    @contextmanager
    def _translated(self, base_uri: str, when_refused: StoreError | None = None) -> Iterator[None]:
        """Turn the client's errors into the library's; a failed condition into ``when_refused``."""
        from botocore.exceptions import (  # noqa: PLC0415 - an extra
            BotoCoreError,
            ClientError,
            ConnectionError as BotoConnectionError,
            HTTPClientError,
        )

        place = f"{base_uri} in the DynamoDB table {self._table}"
        try:
            yield
        except ClientError as error:
            code = cast("str", error.response.get("Error", {}).get("Code", ""))
            if code == _CONDITION_FAILED and when_refused is not None:
                raise when_refused from error
            kind = StoreError
            if code in _THROTTLED:
                kind = StoreThrottledError
            elif code in _PASSING:
                kind = StoreUnavailableError
            raise kind(f"{place}: {error}") from error
        except (BotoConnectionError, HTTPClientError) as error:
            raise StoreUnavailableError(f"{place}: {error}") from error
        except BotoCoreError as error:
            raise StoreError(f"{place}: {error}") from error
