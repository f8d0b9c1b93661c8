"""The settings of the service: read once at start-up, then passed down.

Where values come from is told in `service.settings_sources`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.uri_secrets import require_no_password

ENV_PREFIX = "LANCE_SERVE_"

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
_Root = Annotated[str, AfterValidator(require_no_password)]

_MAX_FILTER_BYTES = 1 << 20
"""Filters longer than this are refused by the library itself."""
_DATABASE = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def _secret(description: str, default: object) -> Any:  # noqa: ANN401 - as pydantic's Field
    return Field(
        default=default,
        repr=False,
        description=description,
        json_schema_extra={"secret": True},
    )


class Place(BaseModel):
    """Where the datasets of one database lie, and what the store there needs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    root: _Root = Field(description="Directory or object-store URI.")
    storage_options: Mapping[str, str] = _secret("Options of the object store.", {})


class TextModel(BaseModel):
    """A column whose vectors are those of a model, which then makes vectors of texts too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: str = Field(description="Identifier of the table.")
    column: str = Field(description="Its column of vectors.")
    model: Literal["all-MiniLM-L6-v2"] = Field(
        default="all-MiniLM-L6-v2", description="Name of the model."
    )
    vocabulary: str = Field(description="File of the words that the model knows, one a line.")


class Settings(BaseSettings):
    """All settings; each can be given as an environment variable ``LANCE_SERVE_<NAME>``."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    root: _Root | None = Field(
        default=None,
        description="Directory or object-store URI that holds the datasets; none = databases do.",
    )
    storage_options: Mapping[str, str] = _secret(
        "Options of the object store, as a JSON object.", {}
    )
    databases: Mapping[str, Place] = _secret(
        "Several roots instead of one, by name: a JSON object of objects, each with its root and"
        " storage_options.",
        {},
    )
    allowed_roots: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Further local directories that symbolic links may lead to, comma-separated.",
    )

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on.")
    workers: PositiveInt = Field(default=1, description="Server processes, each with own caches.")
    tls_certificate: str | None = Field(
        default=None, description="PEM file with the certificate chain; none = plain HTTP."
    )
    tls_key: str | None = Field(
        default=None, description="PEM file with its key; none = it is in the same file."
    )
    tls_key_password: str | None = _secret("Password of that file.", None)
    tls_client_ca: str | None = Field(
        default=None,
        description="PEM file; callers must then show a certificate that one of its authorities"
        " signed.",
    )

    api_keys: Annotated[tuple[str, ...], NoDecode] = _secret(
        "Accepted keys that may read everything, comma-separated: each as sha256:HEX, or itself.",
        (),
    )
    api_keys_file: str | None = Field(
        default=None,
        description="YAML or TOML file of keys with rights, read anew when it changes.",
    )
    jwt_keys: str | None = Field(
        default=None,
        description="Key set (JWKS), a file or an https URL, that signs accepted bearer tokens.",
    )
    jwt_audience: str | None = Field(default=None, description="Audience that tokens must name.")
    jwt_issuer: str | None = Field(default=None, description="Issuer that tokens must name.")
    jwt_claim: str = Field(default="lance", description="Claim that holds the rights of a token.")
    insecure: bool = Field(
        default=False, description="Allow listening beyond loopback without any key."
    )
    metrics_need_key: bool = Field(default=False, description="Ask for a key at /metrics too.")

    cache_bytes: PositiveInt = Field(
        default=2 << 30, description="Byte budget of the index and metadata cache of one worker."
    )
    disk_cache: str | None = Field(
        default=None,
        description="Local directory that keeps what is read of remote stores, for all workers and"
        " later runs; none = nothing is kept.",
    )
    disk_cache_bytes: PositiveInt = Field(
        default=16 << 30, description="Byte budget of that directory."
    )
    max_concurrency: PositiveInt = Field(
        default=16, description="Store requests under way at once, per worker."
    )
    max_open_datasets: PositiveInt = Field(
        default=256, description="Dataset versions kept open, per worker."
    )
    read_consistency_interval: NonNegativeFloat = Field(
        default=5.0,
        description="Seconds for which the latest known version is taken for the latest; 0 = look"
        " every time.",
    )

    search_threads: PositiveInt = Field(
        default=2, description="Threads that search resident data: queries at one time."
    )
    io_threads: PositiveInt = Field(
        default=8,
        description="Threads for plain queries, first reads and everything that waits: so many of"
        " these at one time.",
    )
    max_queued_requests: PositiveInt = Field(
        default=1024, description="Requests that may wait for such a thread before 429 is answered."
    )
    query_timeout_s: PositiveFloat = Field(
        default=30.0, description="Seconds until the answer of a query has to begin."
    )
    drain_timeout_s: PositiveInt = Field(
        default=30, description="Seconds that running requests get to finish after SIGTERM."
    )
    stall_timeout_s: PositiveFloat = Field(
        default=60.0,
        description="Seconds after which a connection is closed that sends half a request, or takes"
        " none of its answer.",
    )
    max_connections: PositiveInt = Field(
        default=15_000, description="Open connections, per worker; more are closed at once."
    )
    max_body_bytes: PositiveInt = Field(
        default=64 << 20, description="Largest request body, in bytes."
    )
    max_k: PositiveInt = Field(
        default=1_000_000,
        description="Largest k of a vector query, and largest vectors times k (up to the number of"
        " rows) of a batch; for one vector, a k of 2^62 and more means no limit.",
    )
    max_probes: PositiveInt = Field(
        default=1_000_000, description="Largest number of partitions that a query may ask for."
    )
    max_ef: PositiveInt = Field(
        default=1_000_000, description="Largest breadth of a graph search that may be asked for."
    )
    max_batch: PositiveInt = Field(
        default=10_000, description="Most query vectors, or rows to search by, in one request."
    )
    max_filter_bytes: int = Field(
        default=_MAX_FILTER_BYTES,
        ge=1,
        le=_MAX_FILTER_BYTES,
        description="Longest filter, in bytes.",
    )
    max_answer_bytes: PositiveInt = Field(
        default=2 << 30,
        description="Most bytes of rows in an answer that is made as a whole: of all but plain"
        " queries.",
    )
    max_resident_bytes: PositiveInt | None = Field(
        default=None,
        description="Memory of a worker, mapped files left out, from which on queries are turned"
        " away; it should be larger than cache_bytes by half a gigabyte. None = no such bound.",
    )
    recall_sample_rate: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of indexed vector queries that are asked again exactly, for the metrics"
        " of recall.",
    )

    text_model: TextModel | None = Field(
        default=None,
        description="Column that can be searched by what a text means, as in the demo (extra demo):"
        " a JSON object of its table, column and the model's vocabulary.",
    )

    log_level: LogLevel = Field(default="INFO", description="Lowest level that is logged.")
    tracing_endpoint: str | None = Field(
        default=None,
        description="URL that takes OpenTelemetry traces by OTLP over HTTP (extra tracing); none ="
        " no traces are made.",
    )
    tracing_sample_rate: float = Field(
        default=1.0, ge=0, le=1, description="Share of requests traced where the caller leaves it."
    )

    @field_validator("allowed_roots", "api_keys", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part for part in (p.strip() for p in value.split(",")) if part != "")
        return value

    @field_validator("api_keys")
    @classmethod
    def _keep_digests(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Keep no key itself: what cannot be read cannot be shown by mistake."""
        return tuple(key if _DIGEST.fullmatch(key) else digest_of(key) for key in keys)

    @field_validator("databases")
    @classmethod
    def _check_names(cls, databases: Mapping[str, Place]) -> Mapping[str, Place]:
        for name in databases:
            if _DATABASE.fullmatch(name) is None:
                raise ValueError(f'"{name}" is no name: use letters, digits, "_", "-" and "."')
        return databases

    @model_validator(mode="after")
    def _require_places(self) -> Settings:
        if (self.root is None) == (len(self.databases) == 0):
            raise ValueError("root: give a root, or databases, and not both")
        if self.root is None and len(self.storage_options) > 0:
            raise ValueError("storage_options: each of the databases has its own")
        return self

    @model_validator(mode="after")
    def _require_whole_groups(self) -> Settings:
        if self.jwt_keys is not None and (self.jwt_audience is None or self.jwt_issuer is None):
            raise ValueError("jwt_keys: needs jwt_audience and jwt_issuer, so that tokens for other"
                             " services are not taken")  # fmt: skip
        beside = (self.tls_key, self.tls_key_password, self.tls_client_ca)
        if self.tls_certificate is None and any(each is not None for each in beside):
            raise ValueError("tls_certificate: is needed for the other settings of TLS")
        return self

    def places(self) -> Mapping[str | None, Place]:
        """Return where each database lies; a single root is one without a name."""
        if self.root is None:
            return {name: place for name, place in self.databases.items()}  # noqa: C416
        return {None: Place(root=self.root, storage_options=self.storage_options)}

    @property
    def asks_for_keys(self) -> bool:
        """Whether callers have to show who they are."""
        return self.api_keys != () or self.api_keys_file is not None or self.jwt_keys is not None


def digest_of(key: str) -> str:
    """Return the form in which a key is kept.

    Keys are long and random, so that a plain hash cannot be turned round; a slow one would cost
    more than the search.
    """
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def is_secret(name: str) -> bool:
    """Tell whether the value of a setting must not be shown."""
    extra = Settings.model_fields[name].json_schema_extra
    return isinstance(extra, dict) and extra.get("secret") is True
