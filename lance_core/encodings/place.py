"""Where in which file a decoder works: what its errors must name."""

from __future__ import annotations

from dataclasses import dataclass

from lance_core.errors import CorruptFileError, UnsupportedFeatureError


@dataclass(frozen=True, slots=True)
class Place:
    """A column of a file."""

    path: str
    column: str

    def corrupt(self, reason: str, *, offset: int | None = None) -> CorruptFileError:
        """Return the error for bytes that contradict the format."""
        return CorruptFileError(self.path, f"column {self.column!r}: {reason}", offset=offset)

    def unsupported(self, encoding: str) -> UnsupportedFeatureError:
        """Return the error for an encoding that cannot be read."""
        return UnsupportedFeatureError(
            f"column {self.column!r} of {self.path} is encoded as {encoding}, "
            "which this release does not read"
        )
