"""The settings of the service: read once at start-up, then passed down."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

ENV_PREFIX = "LANCE_SERVE_"

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class Settings(BaseSettings):
    """All settings; each can be given as an environment variable ``LANCE_SERVE_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True)

    root: str = Field(description="Directory or object-store URI that holds the datasets.")
    storage_options: Mapping[str, str] = Field(
        default={}, repr=False, description="Options of the object store, as a JSON object."
    )
    allowed_roots: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Further local directories that symbolic links may lead to, comma-separated.",
    )

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on.")
    workers: PositiveInt = Field(default=1, description="Server processes, each with own caches.")
    api_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        repr=False,
        description="Accepted keys, comma-separated; none = every caller is accepted.",
    )
    insecure: bool = Field(
        default=False, description="Allow listening beyond loopback without any key."
    )

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

    search_threads: PositiveInt = Field(default=2, description="Threads that search resident data.")
    io_threads: PositiveInt = Field(
        default=8, description="Threads for plain queries, first reads and everything that waits."
    )
    max_queued_requests: PositiveInt = Field(
        default=1024, description="Requests that may wait for a thread before 503 is answered."
    )
    query_timeout_s: PositiveFloat = Field(
        default=30.0, description="Seconds until the answer of a query has to begin."
    )
    drain_timeout_s: PositiveInt = Field(
        default=30, description="Seconds that running requests get to finish after SIGTERM."
    )
    max_body_bytes: PositiveInt = Field(
        default=64 << 20, description="Largest request body, in bytes."
    )
    max_k: PositiveInt = Field(
        default=1_000_000,
        description="Largest k of a vector query, and largest vectors times k (up to the number of"
        " rows) of a batch; for one vector, a k of 2^62 and more means no limit.",
    )
    log_level: LogLevel = Field(default="INFO", description="Lowest level that is logged.")

    @field_validator("allowed_roots", "api_keys", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part for part in (p.strip() for p in value.split(",")) if part != "")
        return value


def load_settings(**given: object) -> Settings:
    """Read the settings from the environment; values that are given win.

    Raises
    ------
    ValueError
        A value is out of range, or the environment names a setting that does not exist. (A
        misspelt variable would otherwise be ignored and the default taken without a word.)
    """
    known = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
    unknown = sorted(n for n in os.environ if n.startswith(ENV_PREFIX) and n not in known)
    if unknown:
        raise ValueError(
            f"unknown setting {', '.join(unknown)}; settings are: {', '.join(sorted(known))}"
        )
    return Settings(**given)  # type: ignore[arg-type]  # pydantic checks them


def to_environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which ``load_settings`` makes these settings again.

    Worker processes start with a fresh interpreter and take their settings from there.
    """
    values = settings.model_dump(mode="json", exclude_none=True)
    return {ENV_PREFIX + name.upper(): _as_text(value) for name, value in values.items()}


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(value)
    return str(value)
