"""Which fields files of a version can hold, asked before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.encodings.hints import Hints
from lance_core.encodings.version import FileVersion
from lance_core.errors import UnsupportedFeatureError
from lance_core.file.blob_writer import check_blob
from lance_core.schema.arrow import arrow_type

if TYPE_CHECKING:
    from lance_core.schema.field import LanceField

_NO_BYTES = "fixed_size_binary:0"
_LISTS_OF_STRUCTS = "fixed_size_list:struct:"


def check_storable(field: LanceField, path: str, version: FileVersion) -> None:
    """Refuse a top-level field that cannot be written.

    Parameters
    ----------
    field
        The field as the caller knows it.
    path
        The file.
    version
        Its version.

    Raises
    ------
    UnsupportedFeatureError
        The format has no such type or its version does not, or no reader could read it.
    InvalidRequestError
        The field's metadata asks for something that does not exist.
    """
    for node in field.walk():
        Hints.of(node.metadata, node.name)
        if node.is_blob and node is not field:
            raise _refused(field, node, "blobs inside other columns are not written; move it out")
    if field.is_blob:
        check_blob(field, path, version)
        return
    arrow_type(field)  # knows all types of the format
    for node in field.walk():
        if node.logical_type.startswith(_LISTS_OF_STRUCTS):
            # pylance cannot read such a column beside another one
            raise _refused(field, node, "fixed-size lists of structs are not written; use lists")
        if node.logical_type.startswith("fixed_size_list:") and _NO_BYTES in node.logical_type:
            # pylance writes them and refuses to read them
            raise _refused(field, node, "fixed-size lists of no bytes are not written; use lists")
        if node.logical_type == "map" and version is not FileVersion.V2_2:
            raise _refused(field, node, f"maps need file version 2.2, not {version.value}")
        if node.asks_to_be_packed and not _can_be_packed(node, version):
            raise _refused(field, node, "it cannot be packed; drop lance-encoding:packed from it")
        if node.asks_in_other_words and version is not FileVersion.V2_0:
            # pylance's reader counts the columns of such a struct in another way than its writer
            raise _refused(field, node, 'lance-encoding:packed must be "true" or left out')


def _can_be_packed(node: LanceField, version: FileVersion) -> bool:
    """Tell whether pylance reads what asks to be packed; it counts its columns as one.

    Which lists of numbers or strings have in 2.1+ files, where the key means nothing to them.
    """
    if node.logical_type == "struct" and len(node.children) == 0:
        return False  # pylance panics or reads nulls
    if version is FileVersion.V2_0:
        return node.owns_column
    is_nested = any(
        len(below.children) > 1 or below.logical_type == "struct" for below in node.walk()
    )
    has_empty = any(child.logical_type == _NO_BYTES for child in node.children)
    return not has_empty if node.is_packed else not is_nested


def _refused(field: LanceField, node: LanceField, reason: str) -> UnsupportedFeatureError:
    inner = "" if node is field else f", field {node.name!r}"
    return UnsupportedFeatureError(f"column {field.name!r}{inner}: {reason}")
