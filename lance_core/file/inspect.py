"""What a Lance file holds: container, columns, pages, encodings and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError

from lance_core.encodings.encoding_text import array_text, layout_text
from lance_core.file.columns import fields_with_columns
from lance_core.proto import encodings20_pb2, encodings21_pb2
from lance_core.schema.arrow import arrow_type
from lance_core.schema.blobs import described

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lance_core.file.reader import LanceFileReader
    from lance_core.ids import ColumnIndex
    from lance_core.proto import file2_pb2
    from lance_core.schema.field import LanceField


@dataclass(frozen=True, slots=True)
class PageReport:
    """One page: ``num_bytes`` are those of its buffers, without what aligns them."""

    num_rows: int
    num_bytes: int
    encoding: str


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """One physical column: the path of the field it holds, and its pages in row order."""

    index: int
    path: str
    logical_type: str
    pages: tuple[PageReport, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of all pages."""
        return sum(page.num_bytes for page in self.pages)

    @property
    def encodings(self) -> dict[str, int]:
        """How many pages have which encoding, in the order of their first page."""
        counts: dict[str, int] = {}
        for page in self.pages:
            counts[page.encoding] = counts.get(page.encoding, 0) + 1
        return counts


@dataclass(frozen=True, slots=True)
class FieldReport:
    """One top-level field: bytes in the file and, if it was read, in Arrow memory."""

    name: str
    arrow_type: str
    num_bytes: int
    arrow_bytes: int | None

    @property
    def ratio(self) -> float | None:
        """Bytes in the file by bytes in Arrow memory."""
        if self.arrow_bytes is None or self.arrow_bytes == 0:
            return None
        return self.num_bytes / self.arrow_bytes


@dataclass(frozen=True, slots=True)
class FileReport:
    """Everything; ``buffers`` are the sizes of the global buffers, 0 is the file descriptor."""

    path: str
    version: str
    size: int
    num_rows: int
    buffers: tuple[int, ...]
    metadata: Mapping[str, str]
    fields: tuple[FieldReport, ...]
    columns: tuple[ColumnReport, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values, ready for JSON."""
        return {
            "path": self.path,
            "version": self.version,
            "size": self.size,
            "num_rows": self.num_rows,
            "global_buffers": list(self.buffers),
            "metadata": dict(self.metadata),
            "fields": [
                {
                    "name": field.name,
                    "arrow_type": field.arrow_type,
                    "num_bytes": field.num_bytes,
                    "arrow_bytes": field.arrow_bytes,
                    "ratio": field.ratio,
                }
                for field in self.fields
            ],
            "columns": [
                {
                    "index": column.index,
                    "path": column.path,
                    "logical_type": column.logical_type,
                    "num_bytes": column.num_bytes,
                    "pages": [
                        {
                            "num_rows": page.num_rows,
                            "num_bytes": page.num_bytes,
                            "encoding": page.encoding,
                        }
                        for page in column.pages
                    ],
                }
                for column in self.columns
            ],
        }


def inspect_file(reader: LanceFileReader, *, has_ratios: bool = True) -> FileReport:
    """Describe a file.

    Parameters
    ----------
    reader
        The open file.
    has_ratios
        Also read all rows, to tell how large they are in Arrow memory. Without it nothing but
        metadata is read, and encodings that cannot be decoded do no harm.

    Raises
    ------
    CorruptFileError
        The file contradicts the format.
    UnsupportedFeatureError
        Only with ``has_ratios``: a page is encoded in a way that is not read.
    """
    metadata = reader.metadata
    paths = _paths(reader)
    owners = fields_with_columns(metadata.schema, metadata.version)
    columns = tuple(
        ColumnReport(
            index,
            paths[id(owner)],
            owner.logical_type,
            _pages(metadata.column(index)),
        )
        for index, owner in zip(range(metadata.num_columns), owners, strict=False)
    )
    stored = {column.index: column.num_bytes for column in columns}
    fields = tuple(_field(reader, field, stored, has_ratios) for field in metadata.schema.fields)
    return FileReport(
        metadata.path,
        metadata.version.value,
        metadata.size,
        metadata.num_rows,
        tuple(end - start for start, end in metadata.buffers),
        metadata.schema.metadata,
        fields,
        columns,
    )


def _field(
    reader: LanceFileReader, field: LanceField, stored: Mapping[int, int], has_ratios: bool
) -> FieldReport:
    target = reader.target(f"`{field.name.replace('`', '``')}`")
    arrow_bytes = None
    if has_ratios:
        arrow_bytes = sum(batch.nbytes for batch in reader.scan([target]))
    indices: set[ColumnIndex] = set(target.columns.values())
    num_bytes = sum(stored.get(index, 0) for index in indices)
    return FieldReport(field.name, str(arrow_type(described(field))), num_bytes, arrow_bytes)


def _paths(reader: LanceFileReader) -> dict[int, str]:
    """Return the path of every field, by identity: ids may be unassigned."""

    def walk(field: LanceField, before: str) -> Iterator[tuple[int, str]]:
        path = f"{before}{field.name}"
        yield id(field), path
        for child in field.children:
            yield from walk(child, f"{path}.")

    return dict(pair for field in reader.schema.fields for pair in walk(field, ""))


def _pages(column: file2_pb2.ColumnMetadata) -> tuple[PageReport, ...]:
    return tuple(
        PageReport(page.length, sum(page.buffer_sizes), _encoding(page.encoding.direct.encoding))
        for page in column.pages
    )


def _encoding(encoding: bytes) -> str:
    try:
        wrapped = AnyMessage.FromString(encoding)
        kind = wrapped.type_url.rpartition("/")[2]
        if kind == "lance.encodings21.PageLayout":
            return layout_text(encodings21_pb2.PageLayout.FromString(wrapped.value))
        if kind == "lance.encodings.ArrayEncoding":
            return array_text(encodings20_pb2.ArrayEncoding.FromString(wrapped.value))
    except DecodeError:
        return "damaged"
    return f"unknown ({kind[:80]})"
