"""Checking the files of index segments, and the Fragment Reuse Index."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.cache.byte_cache import ByteCache
from lance_core.errors import CorruptFileError, UnknownColumnError, UnsupportedFeatureError
from lance_core.expr.index_query import AnyOf, Between
from lance_core.file.reader import LanceFileReader
from lance_core.index.ordinals import OrdinalSpace
from lance_core.index.registry import IndexKind, Unusable, UnusableSegmentError, classify
from lance_core.index.scalar.open import open_scalar_segment
from lance_core.index.text.segment import open_text_segment
from lance_core.index.vector.blocks import load_blocks
from lance_core.index.vector.metric import metric_in_details
from lance_core.index.vector.segment import VectorSegment
from lance_core.operations.verify_file import check_size, read_all_rows
from lance_core.operations.verify_words import check_words
from lance_core.schema.arrow import arrow_type
from lance_core.table.base_paths import Place
from lance_core.table.reuse_map import AddressMap
from lance_core.table.reuse_of_version import reuse_of

if TYPE_CHECKING:
    from lance_core.operations.verify_finding import Findings
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.index_metadata import IndexMetadata
    from lance_core.table.snapshot import Snapshot

_LANCE_FILES = (".lance", ".idx")
_INDEX_BYTES = 64 << 20


class IndexChecker:
    """Checks index segments of any number of versions, each once.

    Parameters
    ----------
    findings
        Takes what is wrong.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._checked: set[tuple[str, str]] = set()

    def check(self, snapshot: Snapshot) -> None:
        """Check all segments of a version, and its reuse history."""
        for segment in snapshot.indices:
            if segment.is_system:
                continue
            with self._findings.of(snapshot.manifest.path):
                folder = snapshot.index_place(segment)
                if folder.key not in self._checked:
                    self._checked.add(folder.key)
                    self._check_segment(folder, segment, snapshot.schema)
        with self._findings.of(snapshot.manifest.path):
            self._check_reuse(snapshot)

    def _check_segment(self, folder: Place, segment: IndexMetadata, schema: LanceSchema) -> None:
        are_sound = [
            self._findings.sound(place.path, partial(_read_file, place, size))
            for place, size in _files_of(folder, segment)
        ]
        is_used = segment.fragment_bitmap is None or len(segment.fragment_bitmap) > 0
        kind = classify(segment)
        if not all(are_sound) or not is_used or isinstance(kind, Unusable):
            return
        checks = [(kind.may_be_vector, self._check_vectors), (kind.may_be_scalar, _check_keys)]
        for is_meant, check in checks:
            # A kind or an encoding that this release does not read is no fault of the segment.
            passing = suppress(UnusableSegmentError, UnsupportedFeatureError, UnknownColumnError)
            if is_meant:
                with self._findings.of(folder.path), passing:
                    check(folder, segment, schema)

    def _check_vectors(self, folder: Place, segment: IndexMetadata, _: LanceSchema) -> None:
        """Load every partition, which checks what a search relies on; compare the metrics."""
        opened = VectorSegment.open(folder, segment.uuid, segment.files)
        nowhere = OrdinalSpace([], [])
        for partition in range(opened.num_partitions):
            load_blocks(opened, nowhere, [partition])
        recorded = metric_in_details(segment.details)
        self._findings.expect(
            recorded in {None, opened.metric},
            opened.storage.reader.path,
            f"the files say metric {opened.metric}, the manifest {recorded}",
        )

    def _check_reuse(self, snapshot: Snapshot) -> None:
        path = snapshot.manifest.path
        history = reuse_of(snapshot.scheduler, snapshot.manifest)
        AddressMap(history, path)
        present = snapshot.fragments_by_id
        for version in history.versions:
            back = [each for each in version.old_ids if each in present]
            self._findings.expect(
                len(back) == 0, path, f"fragments {back} are there, the reuse index has them gone"
            )
            for group in version.groups:
                for digest in group.new_fragments:
                    fragment = present.get(digest.id)
                    if fragment is not None and fragment.physical_rows != digest.physical_rows:
                        raise CorruptFileError(
                            path,
                            f"fragment {digest.id} has {fragment.physical_rows} rows, the reuse"
                            f" index says {digest.physical_rows}",
                        )


def _check_keys(folder: Place, segment: IndexMetadata, schema: LanceSchema) -> None:
    """Find all rows of a scalar index, which checks the order of its keys, and no value at all.

    Of an inverted index all is read, see `check_words`.

    For that a Bloom filter looks at all its filters.
    """
    cache = ByteCache(_INDEX_BYTES)
    if classify(segment) is IndexKind.INVERTED:
        check_words(open_text_segment(folder, segment, cache))
        return
    field = schema.by_id(segment.field_ids[0])
    opened = open_scalar_segment(folder, segment, cache, field)
    for query in (Between(None, None), AnyOf(pa.nulls(0, arrow_type(field)))):
        if opened.supports(query):
            opened.search(query, with_nulls=True, check=lambda: None)


def _files_of(folder: Place, segment: IndexMetadata) -> list[tuple[Place, int]]:
    """Return the files of a segment with their sizes; old writers did not list them."""
    if len(segment.files) > 0:
        return [(folder.below(file.path), file.size) for file in segment.files]
    scheduler = folder.scheduler
    return [
        (Place(scheduler, meta.path), meta.size) for meta in scheduler.store.list_tree(folder.path)
    ]


def _read_file(place: Place, size: int) -> None:
    check_size(place, size)
    if place.path.endswith(_LANCE_FILES):
        # other writers may know how to read what we do not, and then we scan the rows instead
        with suppress(UnsupportedFeatureError):
            read_all_rows(LanceFileReader.open(place.scheduler, place.path, size))
