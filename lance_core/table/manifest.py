"""The manifest file of one version: its container, and its message as values.

The message is parsed when the manifest is read and converted when somebody asks: a dataset may have
a hundred thousand fragments, and opening it must not pay for each.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError, Message

from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.proto import table_pb2
from lance_core.schema.from_proto import schema_from_messages
from lance_core.table.base_paths import base_paths_of
from lance_core.table.flags import Feature, FeatureFlags, check_readable
from lance_core.table.fragment import Fragment, fragment_from_proto
from lance_core.table.index_metadata import IndexMetadata, index_from_proto

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.ids import FragmentId
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectMeta
    from lance_core.schema.tree import LanceSchema
    from lance_core.table.base_paths import BasePath

M = TypeVar("M", bound=Message)

_TAIL_BYTES = 64 << 10
_FOOTER = struct.Struct("<qHH4s")
_LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Manifest:
    """One version of a dataset: schema, fragments and index entries.

    ``message`` is the parsed message itself; fields that this release does not know are kept in it.
    """

    path: str
    message: table_pb2.Manifest
    index_section: table_pb2.IndexSection

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.message.version

    @property
    def flags(self) -> FeatureFlags:
        """Feature flag words."""
        return FeatureFlags(self.message.reader_feature_flags, self.message.writer_feature_flags)

    @cached_property
    def has_stable_row_ids(self) -> bool:
        """Whether rows have ids that stay when they move."""
        return self.message.reader_feature_flags & Feature.STABLE_ROW_IDS != 0

    @property
    def next_row_id(self) -> int:
        """The smallest stable row id that no row ever had; 0 without such ids."""
        return self.message.next_row_id

    @cached_property
    def base_paths(self) -> Mapping[int, BasePath]:
        """Other places that hold files of this version, by id."""
        return base_paths_of(self.message, self.path)

    @property
    def config(self) -> Mapping[str, str]:
        """Table configuration."""
        return self.message.config

    @property
    def timestamp(self) -> datetime | None:
        """When the version was committed, UTC, None where not recorded.

        Raises
        ------
        CorruptFileError
            The time is outside the years 1 to 9999.
        """
        if not self.message.HasField("timestamp"):
            return None
        stamp = self.message.timestamp
        try:
            return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
        except OverflowError as error:
            raise CorruptFileError(self.path, f"timestamp {stamp.seconds} s") from error

    @cached_property
    def schema(self) -> LanceSchema:
        """Field tree of the table."""
        return schema_from_messages(
            self.message.fields, self.message.schema_metadata, path=self.path
        )

    @cached_property
    def fragments(self) -> tuple[Fragment, ...]:
        """All fragments in the order of the manifest, which foreign writers may not have sorted."""
        return tuple(self.fragments_by_id.values())

    @cached_property
    def fragments_by_id(self) -> Mapping[FragmentId, Fragment]:
        """All fragments by id, in the order of the manifest.

        Raises
        ------
        CorruptFileError
            Two fragments have the same id, or one contradicts itself.
        """
        fragments = [fragment_from_proto(each, self.path) for each in self.message.fragments]
        by_id = {fragment.id: fragment for fragment in fragments}
        if len(by_id) != len(fragments):
            raise CorruptFileError(self.path, "two fragments have the same id")
        return by_id

    @cached_property
    def indices(self) -> tuple[IndexMetadata, ...]:
        """All entries of the index section, system entries included."""
        return tuple(index_from_proto(each, self.path) for each in self.index_section.indices)


def read_manifest(scheduler: RangeScheduler, meta: ObjectMeta) -> Manifest:
    """Read one manifest, whatever features it needs (``check_supported`` looks at those).

    One request of at most 64 KiB, one more if the message does not fit in it, and one more if the
    index section lies before what was read.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset.
    meta
        The manifest as the store lists it.

    Raises
    ------
    CorruptFileError
        Footer, a section or the message contradicts the format.

    Notes
    -----
    Lance table format, section "Manifest file container"; verified against pylance 14.0.2. The
    version numbers of the footer are not looked at: 0.1 and 0.2 are read alike.
    """
    source = _ManifestBytes(scheduler, meta)
    position = source.manifest_position
    message = source.section(position, source.footer_start, table_pb2.Manifest)
    return Manifest(meta.path, message, _index_section(source, message))


class _ManifestBytes:
    """The bytes of one manifest file; reads what the first request did not bring."""

    __slots__ = ("_path", "_scheduler", "_size", "_start", "_tail")

    def __init__(self, scheduler: RangeScheduler, meta: ObjectMeta) -> None:
        self._scheduler = scheduler
        self._path = meta.path
        self._tail, self._start, self._size = scheduler.tail(meta.path, meta.size, _TAIL_BYTES)

    @property
    def footer_start(self) -> int:
        return self._size - _FOOTER.size

    @property
    def manifest_position(self) -> int:
        """Where the footer says that the manifest message lies."""
        if self._size < _FOOTER.size:
            raise CorruptFileError(self._path, f"{self._size} bytes are too few for a manifest")
        position, _, _, magic = _FOOTER.unpack(self._tail[-_FOOTER.size :])
        if magic != _MAGIC:
            raise CorruptFileError(
                self._path, f"ends with {magic!r}, not {_MAGIC!r}", offset=self._size - len(_MAGIC)
            )
        return int(position)

    def section(self, start: int, limit: int, message_type: type[M]) -> M:
        """Parse the length-prefixed message at ``start``, which must end before ``limit``."""
        if not 0 <= start <= limit - _LENGTH.size:
            raise CorruptFileError(self._path, f"a section begins at byte {start}, before {limit}")
        data = self._read(start, limit)
        (length,) = _LENGTH.unpack(data[: _LENGTH.size])
        if length > len(data) - _LENGTH.size:
            raise CorruptFileError(
                self._path, f"a section of {length} bytes runs past byte {limit}", offset=start
            )
        try:
            return message_type.FromString(bytes(data[_LENGTH.size : _LENGTH.size + length]))
        except DecodeError as error:
            name = message_type.DESCRIPTOR.name
            raise CorruptFileError(self._path, f"{name}: {error}", offset=start) from error

    def _read(self, start: int, limit: int) -> memoryview:
        if start >= self._start:
            return self._tail[start - self._start : limit - self._start]
        if limit <= self._start:
            return self._scheduler.read(self._path, [(start, limit)])[0]
        head = self._scheduler.read(self._path, [(start, self._start)])[0]
        return memoryview(b"".join((head, self._tail[: limit - self._start])))


def _index_section(source: _ManifestBytes, message: table_pb2.Manifest) -> table_pb2.IndexSection:
    """Return the index section; a version without indices has an empty one."""
    if not message.HasField("index_section"):
        return table_pb2.IndexSection()
    start = message.index_section
    # sections follow one another, so the next one bounds a read that cannot know its length yet
    others = (
        message.transaction_section,
        message.transaction_section_deprecated,
        source.manifest_position,
    )
    limit = min((other for other in others if other > start), default=source.footer_start)
    return source.section(start, limit, table_pb2.IndexSection)


def check_supported(manifest: Manifest) -> None:
    """Refuse a version whose rows this release would read wrongly.

    Raises
    ------
    CorruptFileError
        The feature flags contradict each other.
    UnsupportedFeatureError
        Names the features that are missing.
    """
    path, message = manifest.path, manifest.message
    check_readable(manifest.flags, path)
    if message.fragment_tree.WhichOneof("layout") is not None:
        raise UnsupportedFeatureError(f"{path} keeps its fragments in a tree")
    file_format = message.data_format.file_format
    if file_format not in {"", "lance"}:
        raise UnsupportedFeatureError(f"{path} has data files of format {file_format}")
