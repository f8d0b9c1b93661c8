"""What is wrong with a dataset, and where."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_core.errors import (
    CorruptFileError,
    LanceError,
    StoreThrottledError,
    StoreUnavailableError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PASSING = (StoreThrottledError, StoreUnavailableError)
"""Faults of the store that say nothing about the dataset."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that contradicts the format, or that could not be looked at.

    Parameters
    ----------
    where
        A file, relative to the root that it lies below.
    what
        What was expected and what was found.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class Findings:
    """Collects what checks find; passing faults of the store are none and end the work."""

    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}

    def add(self, where: str, what: str) -> None:
        """Add a finding; versions share files, so it may be known already."""
        self._found[Finding(where, what)] = None

    def expect(self, condition: object, where: str, what: str) -> None:
        """Add a finding unless a condition holds."""
        if not condition:
            self.add(where, what)

    @contextmanager
    def of(self, where: str) -> Iterator[None]:
        """Turn what ends the block early into a finding, at ``where`` unless the error says it."""
        try:
            yield
        except _PASSING:
            raise
        except LanceError as error:
            self._note(where, error)

    def sound(self, where: str, check: Callable[[], None]) -> bool:
        """Tell whether a check raises nothing; what it raises becomes a finding, as in `of`."""
        try:
            check()
        except _PASSING:
            raise
        except LanceError as error:
            self._note(where, error)
            return False
        return True

    def drain(self) -> list[Finding]:
        """Return what was found since the last call."""
        new = list(self._found)
        self._found.clear()
        return new

    def _note(self, where: str, error: LanceError) -> None:
        if isinstance(error, CorruptFileError):
            at = "" if error.offset is None else f"byte {error.offset}: "
            self.add(error.path, f"{at}{error.reason}")
        elif isinstance(error, UnsupportedFeatureError):
            self.add(where, f"could not be verified: {error}")
        else:
            self.add(where, str(error))
