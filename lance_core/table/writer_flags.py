"""Feature flags as a writer meets and sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.errors import UnsupportedFeatureError
from lance_core.table.flags import Feature, names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance_core.proto import table_pb2

SUPPORTED_WRITE = int(
    Feature.DELETION_FILES
    | Feature.STABLE_ROW_IDS
    | Feature.V2_FILES
    | Feature.TABLE_CONFIG
    | Feature.BASE_PATHS
    | Feature.NO_TRANSACTION_FILES
    | Feature.COVERED_INDEX_METADATA
    | Feature.MIXED_FILE_VERSIONS
    | Feature.FIELD_IDS_NOT_REUSED
)
"""Writer flags that this release honours when it commits."""

_OF_BOTH = int(
    Feature.DELETION_FILES
    | Feature.BASE_PATHS
    | Feature.COVERED_INDEX_METADATA
    | Feature.SPILLED_ROW_LINEAGE
)
_RECOMPUTED = _OF_BOTH | int(Feature.TABLE_CONFIG)


def check_writable(message: table_pb2.Manifest, path: str) -> None:
    """Refuse to commit on top of a version with features that this release does not write.

    Raises
    ------
    UnsupportedFeatureError
        Names them. Reading may be possible all the same.
    """
    unsupported = message.writer_feature_flags & ~SUPPORTED_WRITE
    if unsupported:
        raise UnsupportedFeatureError(
            f"{path} needs features that this release does not write: {names_of(unsupported)}"
        )


def set_flags(message: table_pb2.Manifest, indices: Sequence[table_pb2.IndexMetadata]) -> None:
    """Set the flags that follow from what a version contains, and keep the others.

    Notes
    -----
    Lance table format, section "Feature flags": bits 0, 4, 7 and 11 stand in both words, bit 3 in
    that of writers only; all others are set once and stay.
    """
    both = _flags_of_fragments(message)
    if message.base_paths:
        both |= Feature.BASE_PATHS
    if any(entry.covering_fields for entry in indices):
        both |= Feature.COVERED_INDEX_METADATA
    config = Feature.TABLE_CONFIG if message.config else 0
    message.reader_feature_flags = message.reader_feature_flags & ~_OF_BOTH | both
    message.writer_feature_flags = message.writer_feature_flags & ~_RECOMPUTED | both | config


def _flags_of_fragments(message: table_pb2.Manifest) -> int:
    flags = 0
    for fragment in message.fragments:
        if fragment.HasField("deletion_file"):
            flags |= Feature.DELETION_FILES
        if fragment.HasField("column_row_ids"):
            flags |= Feature.SPILLED_ROW_LINEAGE
    return int(flags)
