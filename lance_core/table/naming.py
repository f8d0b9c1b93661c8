"""Where the files of a dataset lie below its root."""

from __future__ import annotations

import enum
from dataclasses import dataclass

VERSIONS_FOLDER = "_versions"
DATA_FOLDER = "data"
DELETIONS_FOLDER = "_deletions"
INDICES_FOLDER = "_indices"

MANIFEST_SUFFIX = ".manifest"
_V2_DIGITS = 20
_MAX_U64 = 2**64 - 1
FIRST_DETACHED = 2**63
"""Smallest number of a version outside the history."""


class NamingScheme(enum.Enum):
    """How a version number becomes a file name; one dataset uses one of ``V1`` and ``V2``."""

    V1 = "V1"
    V2 = "V2"
    DETACHED = "detached"


@dataclass(frozen=True, slots=True)
class ManifestName:
    """Version and naming scheme that a manifest's file name states."""

    version: int
    scheme: NamingScheme


def manifest_path(version: int, scheme: NamingScheme) -> str:
    """Return the path of a version's manifest, relative to the root of the dataset.

    Examples
    --------
    >>> manifest_path(1, NamingScheme.V2)
    '_versions/18446744073709551614.manifest'
    >>> manifest_path(1, NamingScheme.V1)
    '_versions/1.manifest'
    """
    if scheme is NamingScheme.V2:
        stem = str(_MAX_U64 - version).zfill(_V2_DIGITS)
    elif scheme is NamingScheme.V1:
        stem = str(version)
    else:
        stem = f"d{version}"
    return f"{VERSIONS_FOLDER}/{stem}{MANIFEST_SUFFIX}"


def parse_manifest_name(name: str) -> ManifestName | None:
    """Read a file name of the versions folder, or return None for anything but a manifest.

    Staging objects (``.tmp_...``, ``1.manifest-{uuid}``), the version hint and foreign files are
    none; nor is a name that this module would not write for the version it states.

    Notes
    -----
    Lance table format, section "Names"; verified against pylance 14.0.2: exactly 20 digits are V2,
    any other number of digits is V1, a leading ``d`` marks a detached version.

    Examples
    --------
    >>> parse_manifest_name("18446744073709551614.manifest")
    ManifestName(version=1, scheme=<NamingScheme.V2: 'V2'>)
    >>> parse_manifest_name(".tmp_7.manifest") is None
    True
    """
    if not name.endswith(MANIFEST_SUFFIX):
        return None
    stem = name[: -len(MANIFEST_SUFFIX)]
    digits = stem.removeprefix("d")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _V2_DIGITS:
        return None
    parsed = _interpret(stem, int(digits))
    canonical = manifest_path(parsed.version, parsed.scheme) == f"{VERSIONS_FOLDER}/{name}"
    return parsed if canonical and 0 <= parsed.version <= _MAX_U64 else None


def is_detached(version: int) -> bool:
    """Say whether a version number is one of a detached commit, which is outside the history."""
    return version >= FIRST_DETACHED


def data_file_path(path: str) -> str:
    """Return the path of a data file, relative to the root, from the path in the manifest."""
    return f"{DATA_FOLDER}/{path}"


def index_file_path(uuid: str, path: str) -> str:
    """Return the path of a file of the index segment ``uuid``, relative to the root."""
    return f"{INDICES_FOLDER}/{uuid}/{path}"


def deletion_file_path(fragment_id: int, read_version: int, file_id: int, suffix: str) -> str:
    """Return the path of a deletion file, relative to the root.

    Examples
    --------
    >>> deletion_file_path(3, 7, 42, "arrow")
    '_deletions/3-7-42.arrow'
    """
    return f"{DELETIONS_FOLDER}/{deletion_file_name(fragment_id, read_version, file_id, suffix)}"


def deletion_file_name(fragment_id: int, read_version: int, file_id: int, suffix: str) -> str:
    """Return the name of a deletion file in its folder."""
    return f"{fragment_id}-{read_version}-{file_id}.{suffix}"


def _interpret(stem: str, number: int) -> ManifestName:
    if stem.startswith("d"):
        return ManifestName(number, NamingScheme.DETACHED)
    if len(stem) == _V2_DIGITS:
        return ManifestName(_MAX_U64 - number, NamingScheme.V2)
    return ManifestName(number, NamingScheme.V1)
