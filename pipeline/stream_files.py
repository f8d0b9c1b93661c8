"""Files of a folder as a stream: each new file is read once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileStream:
    """What is read, and how often.

    Parameters
    ----------
    folder
        Where files appear, as Spark writes places. Those that are there already come first.
    file_format
        ``parquet`` or ``json`` (a row per line).
    checkpoint
        Folder where Spark keeps which files it has seen.
    trigger
        How often new files are looked for, such as ``1 minute``; None = until all files that are
        there have been read.
    max_files
        Files of one epoch at most.
    """

    folder: str
    file_format: str
    checkpoint: str
    trigger: str | None = None
    max_files: int = 1000
