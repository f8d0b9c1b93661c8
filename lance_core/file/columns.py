"""Which column of a file holds which field (file format, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field as attribute
from typing import TYPE_CHECKING

from lance_core.encodings.arrow_arrays import plain_bytes
from lance_core.encodings.version import FileVersion
from lance_core.errors import InvalidRequestError
from lance_core.ids import ColumnIndex
from lance_core.schema.arrow import arrow_type
from lance_core.schema.blobs import with_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from lance_core.file.metadata import FileMetadata
    from lance_core.ids import FieldId
    from lance_core.schema.field import LanceField
    from lance_core.schema.tree import LanceSchema


@dataclass(frozen=True, slots=True, eq=False)
class ColumnTarget:
    """A field to read, and the columns of one file that hold its parts.

    ``columns`` has an entry for each part that owns a column: in 2.1+ files the leaves, in 2.0
    files every node. Blobs are read as descriptors, the form that ``field`` has (see
    `schema.blobs`); ``has_bytes`` asks for their bytes instead. ``way`` leads to the part of
    ``field`` that is handed out, where children share one column. ``source`` is what a file said
    about itself, where the target was made for that file: another may keep the field elsewhere.
    """

    field: LanceField
    columns: Mapping[FieldId, ColumnIndex]
    has_bytes: bool = False
    way: tuple[str, ...] = ()
    source: FileMetadata | None = None
    arrow_type: pa.DataType = attribute(init=False)
    plain_bytes: int | None = attribute(init=False)
    """Bytes of a value, if Arrow keeps values one after another as files do; else None."""

    def __post_init__(self) -> None:
        kind = arrow_type(self.field)
        object.__setattr__(self, "arrow_type", kind)
        object.__setattr__(self, "plain_bytes", plain_bytes(kind))

    @property
    def served_field(self) -> LanceField:
        """The field as it is handed out."""
        whole = with_bytes(self.field) if self.has_bytes else self.field
        return whole.below(self.way)

    def check_fits(self, file: FileMetadata) -> None:
        """Raise ``InvalidRequestError`` if it was made for a file that keeps other columns."""
        source = self.source
        if source is None or source is file:
            return
        if source.version is not file.version or source.schema != file.schema:
            raise InvalidRequestError(
                f"the target of {self.field.name!r} was made for another file, {source.path};"
                f" {file.path} keeps other columns: name the column, or make a target for this file"
            )


def fields_with_columns(schema: LanceSchema, version: FileVersion) -> list[LanceField]:
    """Return the fields that own a column, in the order of the columns."""
    if version is FileVersion.V2_0:
        return [node for top in schema.fields for node in _every_node(top)]
    return [node for top in schema.fields for node in top.leaves()]


def column_indices(schema: LanceSchema, version: FileVersion) -> dict[FieldId, ColumnIndex]:
    """Return the column of each field by the rule for files that no manifest describes."""
    fields = fields_with_columns(schema, version)
    return {node.id: ColumnIndex(index) for index, node in enumerate(fields)}


def _every_node(node: LanceField) -> Iterator[LanceField]:
    yield node
    if not node.owns_column:
        for child in node.children:
            yield from _every_node(child)
