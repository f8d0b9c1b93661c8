"""Feature flags of a manifest: which datasets this release reads.

A set bit that this release does not know or does not implement means that rows would come out
wrong if the dataset were read all the same, so it is refused by the name of the feature.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lance_core.errors import CorruptFileError, UnsupportedFeatureError


class Feature(enum.IntFlag):
    """The bits of both flag words.

    Notes
    -----
    Lance table format, section "Feature flags"; every bit tried with pylance 14.0.2. Public
    documents of other dates give other meanings to bits 9 to 12.
    """

    DELETION_FILES = 1 << 0
    STABLE_ROW_IDS = 1 << 1
    V2_FILES = 1 << 2
    TABLE_CONFIG = 1 << 3
    BASE_PATHS = 1 << 4
    NO_TRANSACTION_FILES = 1 << 5
    DATA_OVERLAY_FILES = 1 << 6
    COVERED_INDEX_METADATA = 1 << 7
    MIXED_FILE_VERSIONS = 1 << 8
    REUSE_INDEX_WITH_STABLE_ROW_IDS = 1 << 9
    TAGGED_REUSE_INDEX = 1 << 10
    SPILLED_ROW_LINEAGE = 1 << 11
    MANAGED_BLOBS = 1 << 14
    FIELD_IDS_NOT_REUSED = 1 << 15
    ZONE_WRITE_SEEDS = 1 << 16


SUPPORTED_READ = int(
    Feature.DELETION_FILES
    | Feature.STABLE_ROW_IDS
    | Feature.V2_FILES
    | Feature.TABLE_CONFIG
    | Feature.BASE_PATHS
    | Feature.NO_TRANSACTION_FILES
    | Feature.COVERED_INDEX_METADATA
    | Feature.MIXED_FILE_VERSIONS
    | Feature.SPILLED_ROW_LINEAGE
)
"""Reader flags that this release honours; an int, since ``~`` of a flag drops unknown bits."""

_PAIRED = (
    Feature.MIXED_FILE_VERSIONS
    | Feature.TAGGED_REUSE_INDEX
    | Feature.MANAGED_BLOBS
    | Feature.ZONE_WRITE_SEEDS
)


@dataclass(frozen=True, slots=True)
class FeatureFlags:
    """Both flag words of one manifest."""

    reader: int
    writer: int


def check_readable(flags: FeatureFlags, path: str) -> None:
    """Refuse a manifest that needs a feature this release lacks.

    Parameters
    ----------
    flags
        The flag words.
    path
        The manifest, for the error.

    Raises
    ------
    CorruptFileError
        A bit that must be in both words is in one only.
    UnsupportedFeatureError
        Names every unsupported feature that reading needs.
    """
    torn = (flags.reader ^ flags.writer) & _PAIRED
    if torn:
        raise CorruptFileError(path, f"{names_of(torn)} in one feature flag word only")
    unsupported = flags.reader & ~SUPPORTED_READ
    if unsupported:
        raise UnsupportedFeatureError(
            f"{path} needs features that this release does not read: {names_of(unsupported)}"
        )


def names_of(bits: int) -> str:
    """Return the names of all set bits for a message, unknown ones by their number.

    Examples
    --------
    >>> names_of(0b10010)
    'stable row ids, base paths'
    >>> names_of(1 << 40)
    'unknown feature (bit 40)'
    """
    return ", ".join(_name(bit) for bit in range(bits.bit_length()) if bits >> bit & 1)


def _name(bit: int) -> str:
    names = {feature.value: str(feature.name) for feature in Feature}
    name = names.get(1 << bit)
    if name is None:
        return f"unknown feature (bit {bit})"
    return name.lower().replace("_", " ")
