"""The container of a manifest file, from the messages that belong into it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from lance_core.proto import table_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTH = struct.Struct("<I")
_FOOTER = struct.Struct("<qHH4s")
_VERSION = (0, 2)
_MAGIC = b"LANC"


def manifest_to_bytes(
    message: table_pb2.Manifest, indices: Sequence[table_pb2.IndexMetadata], transaction: bytes
) -> bytes:
    """Return the file of one version.

    Parameters
    ----------
    message
        The manifest. The positions of the sections are set in it.
    indices
        Index entries; a version without any has no index section.
    transaction
        The serialized transaction, which the file of the transaction holds too.

    Notes
    -----
    Lance table format, section "Manifest file container"; verified against pylance 14.0.2. Index
    section, transaction and manifest follow one another, each behind its length.
    """
    body = bytearray()
    message.ClearField("index_section")
    message.ClearField("transaction_section_deprecated")
    if indices:
        message.index_section = 0
        _add_section(body, table_pb2.IndexSection(indices=indices).SerializeToString())
    message.transaction_section = len(body)
    _add_section(body, transaction)
    position = len(body)
    _add_section(body, message.SerializeToString())
    body += _FOOTER.pack(position, *_VERSION, _MAGIC)
    return bytes(body)


def _add_section(body: bytearray, data: bytes) -> None:
    body += _LENGTH.pack(len(data))
    body += data
