"""Versions of the file format (file format, section 1.2)."""

from __future__ import annotations

from enum import Enum
from typing import Self

from lance_core.errors import InvalidRequestError


class FileVersion(Enum):
    """Version of the container and its encodings, by the release that made it stable."""

    V2_0 = "2.0"
    V2_1 = "2.1"
    V2_2 = "2.2"

    @classmethod
    def of(cls, version: Self | str) -> Self:
        """Return the version that is given or spelt.

        Raises
        ------
        InvalidRequestError
            There is no such version.

        Examples
        --------
        >>> FileVersion.of("2.1")
        <FileVersion.V2_1: '2.1'>
        """
        try:
            return cls(version)
        except ValueError:
            known = ", ".join(each.value for each in cls)
            raise InvalidRequestError(f"file version {version!r} is none of {known}") from None
