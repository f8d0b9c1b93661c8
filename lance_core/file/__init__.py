"""One Lance file: container, columns, pages."""

from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter

__all__ = ["LanceFileReader", "LanceFileWriter"]
