"""One Lance file: container, columns, pages."""

from lance_core.encodings.version import FileVersion
from lance_core.file.reader import LanceFileReader
from lance_core.file.writer import LanceFileWriter

__all__ = ["FileVersion", "LanceFileReader", "LanceFileWriter"]
