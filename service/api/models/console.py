"""Bodies of what the console needs beside what clients use: the cache, and vectors of texts."""

from __future__ import annotations

from pydantic import Field

from service.api.models.answers import Answer
from service.api.models.requests import IdBody


class CachedTable(Answer):
    """What the cache holds and has done for one table."""

    table: str | None = Field(
        description="Identifier; null: files outside the databases, as of shallow clones."
    )
    used_bytes: int
    entries: int
    hits: int
    misses: int
    evictions: int


class DiskCache(Answer):
    """The local disk cache of remote stores, which all workers use."""

    budget_bytes: int
    used_bytes: int
    hits: int = Field(description="Ranges of which all bytes were there.")
    misses: int
    damaged: int = Field(description="Entries that were found damaged and read anew.")


class CacheContents(Answer):
    """The cache of the process that answers."""

    budget_bytes: int
    used_bytes: int
    entries: int
    hits: int = Field(description="Keys asked for that were there, since the process started.")
    misses: int
    evictions: int
    loads_in_flight: int
    disk: DiskCache | None = Field(description="Null where none is set up.")
    tables: list[CachedTable] = Field(description="Those the caller may read, the largest first.")


class TextModelColumn(Answer):
    """A column whose vectors a model makes of texts."""

    column: str
    model: str


class TextModels(Answer):
    """The models of a table; mostly none."""

    models: list[TextModelColumn]


class EmbedBody(IdBody):
    """A text of which a vector is wanted."""

    text: str = Field(description="At most 4096 characters; models read only the beginning.")
    column: str | None = Field(None, description="Column to compare with; absent: the only one.")


class EmbeddedText(TextModelColumn):
    """The vector of a text."""

    vector: list[float]
