"""Versions of the file format (file format, section 1.2)."""

from __future__ import annotations

from enum import Enum


class FileVersion(Enum):
    """Version of the container and its encodings, by the release that made it stable."""

    V2_0 = "2.0"
    V2_1 = "2.1"
    V2_2 = "2.2"
