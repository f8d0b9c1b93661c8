"""Invariants of a version that its manifest alone tells."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lance_core.table.flags import Feature, names_of

if TYPE_CHECKING:
    from lance_core.operations.verify_finding import Findings
    from lance_core.table.fragment import Fragment
    from lance_core.table.manifest import Manifest


def check_manifest(manifest: Manifest, findings: Findings) -> None:
    """Check what a manifest says about itself.

    Parameters
    ----------
    manifest
        Of a version that this release reads.
    findings
        Takes what is wrong.

    Raises
    ------
    CorruptFileError
        A part of it cannot be understood at all.

    Notes
    -----
    Lance table format, sections "Feature flags", "Schema, fragments and data files" and "Building
    the manifest".
    """
    _check_fragments(manifest, findings)
    _check_flags(manifest, findings)
    _check_base_paths(manifest, findings)
    _check_indices(manifest, findings)
    for fragment in manifest.fragments:
        _check_fields(manifest, fragment, findings)


def _check_fragments(manifest: Manifest, findings: Findings) -> None:
    path, message = manifest.path, manifest.message
    ids = [fragment.id for fragment in manifest.fragments]
    findings.expect(ids == sorted(ids), path, "fragments are not sorted by their ids")
    if len(ids) > 0 and message.HasField("max_fragment_id"):
        findings.expect(
            max(ids) <= message.max_fragment_id,
            path,
            f"there is a fragment {max(ids)}, the largest id is said to be"
            f" {message.max_fragment_id}",
        )


def _check_flags(manifest: Manifest, findings: Findings) -> None:
    path, flags = manifest.path, manifest.flags
    if any(fragment.deletion_file is not None for fragment in manifest.fragments):
        findings.expect(
            flags.reader & flags.writer & Feature.DELETION_FILES,
            path,
            "there are deletion files, the feature flags do not say so",
        )
    torn = (flags.reader ^ flags.writer) & (Feature.STABLE_ROW_IDS | Feature.BASE_PATHS)
    findings.expect(torn == 0, path, f"{names_of(torn)} in one feature flag word only")


def _check_base_paths(manifest: Manifest, findings: Findings) -> None:
    ids = {base for fragment in manifest.fragments for base in _base_ids(fragment)}
    ids |= {segment.base_id for segment in manifest.indices}
    unknown = sorted(base for base in ids if base is not None and base not in manifest.base_paths)
    findings.expect(len(unknown) == 0, manifest.path, f"there are no base paths {unknown}")


def _base_ids(fragment: Fragment) -> set[int | None]:
    of_files = {file.base_id for file in fragment.data_files}
    deletion_file = fragment.deletion_file
    return of_files if deletion_file is None else {*of_files, deletion_file.base_id}


def _check_indices(manifest: Manifest, findings: Findings) -> None:
    path, message = manifest.path, manifest.message
    counts = Counter(segment.uuid for segment in manifest.indices)
    findings.expect(max(counts.values(), default=1) == 1, path, "two index segments of one uuid")
    known = {field.id for field in message.fields}
    for segment in manifest.indices:
        name = f"index segment {segment.uuid} ({segment.name})"
        if not segment.is_system:
            missing = set(segment.field_ids) - known
            findings.expect(not missing, path, f"{name} is on fields that are gone: {missing}")
        findings.expect(
            segment.dataset_version <= manifest.version,
            path,
            f"{name} was built from version {segment.dataset_version}, which is newer",
        )


def _check_fields(manifest: Manifest, fragment: Fragment, findings: Findings) -> None:
    """Check that no column lies in two files; parents that own none may be named by several."""
    counts = Counter(field for file in fragment.data_files for field in file.columns)
    leaves = [field.id for top in manifest.schema.fields for field in top.leaves()]
    twice = [field for field in leaves if counts[field] > 1]
    findings.expect(
        len(twice) == 0,
        manifest.path,
        f"fields {twice} of fragment {fragment.id} lie in several data files",
    )
