"""The file of API keys: of each its name, its digest and its rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.api.callers import Caller, Rights
from service.settings_sources import read_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_HEX_DIGEST = r"^(sha256:)?[0-9a-f]{64}$"


class KeyEntry(Rights):
    """One key. It is not in the file itself: who reads the file cannot use it."""

    name: str = Field(min_length=1, description="What the log calls it.")
    sha256: str = Field(pattern=_HEX_DIGEST, description="SHA-256 of the key, as hex digits.")


class _KeyFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    keys: list[KeyEntry]


def load_keys(path: Path) -> Mapping[str, Caller]:
    """Return who has which key, by the digest as the settings write it.

    Raises
    ------
    ValueError
        The file cannot be read, or is not as it should be.
    """
    try:
        entries = _KeyFile.model_validate(read_document(path)).keys
    except ValidationError as error:
        mistake = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(each) for each in mistake["loc"])
        raise ValueError(f"{path}: {place}: {mistake['msg']}") from error
    return {
        f"sha256:{each.sha256.removeprefix('sha256:')}": Caller.of(each.name, each)
        for each in entries
    }
