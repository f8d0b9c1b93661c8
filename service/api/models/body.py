"""What all JSON bodies have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NonNegative = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class Body(BaseModel):
    """A JSON body: unknown members are ignored, null means absent, numbers are never text."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)
