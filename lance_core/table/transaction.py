"""What a commit does to a dataset: one operation, as a value.

Fragments, fields and index entries stay the format's own messages: what other writers put into
them, known to this release or not, has to reach the next manifest.
"""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance_core.proto import file_pb2, table_pb2, transaction_pb2

TRANSACTIONS_FOLDER = "_transactions"
NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})
"""Of a transaction that says nothing about itself."""


@dataclass(frozen=True, slots=True)
class Append:
    """Adds fragments, whose ids are given out when the manifest is built."""

    fragments: tuple[table_pb2.DataFragment, ...]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replaces all rows and the schema; the operation of a dataset's first version too."""

    fragments: tuple[table_pb2.DataFragment, ...]
    fields: tuple[file_pb2.Field, ...]
    schema_metadata: Mapping[str, bytes] = field(default_factory=dict)
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[table_pb2.BasePath, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes rows.

    ``updated_fragments`` name the deletion files that hold all deleted rows, old and new;
    ``deleted_fragment_ids`` are fragments without a live row left.
    """

    updated_fragments: tuple[table_pb2.DataFragment, ...]
    deleted_fragment_ids: tuple[int, ...]
    predicate: str = ""


class UpdateMode(enum.Enum):
    """How an update stores new values."""

    REWRITE_ROWS = 0
    """Rows are deleted where they were and written to new fragments."""

    REWRITE_COLUMNS = 1
    """Rows stay; the updated fragments have new files for the columns."""


@dataclass(frozen=True, slots=True)
class Update:
    """Replaces values of rows, and inserts rows.

    Parameters
    ----------
    removed_fragment_ids, updated_fragments
        As in `Delete`; with ``REWRITE_COLUMNS`` the updated fragments have other data files.
    new_fragments
        Ids are given out when the manifest is built. With stable row ids, moved rows carry theirs.
    fields_modified
        Fields written anew in place, with all their ancestors: indices may be built on those.
    fields_preserving_coverage
        The updated fields; indices on others keep covering rows that keep their stable row ids.
    inserted_rows
        Keys that were inserted, for the conflict with another insert of the same key.
    updated_offsets
        With ``REWRITE_COLUMNS``: by fragment, a serialized roaring bitmap of the rows changed.
    """

    removed_fragment_ids: tuple[int, ...] = ()
    updated_fragments: tuple[table_pb2.DataFragment, ...] = ()
    new_fragments: tuple[table_pb2.DataFragment, ...] = ()
    fields_modified: tuple[int, ...] = ()
    fields_preserving_coverage: tuple[int, ...] = ()
    mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: transaction_pb2.KeyExistenceFilter | None = None
    updated_offsets: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Adds index segments and removes others, matched by UUID."""

    new_indices: tuple[table_pb2.IndexMetadata, ...] = ()
    removed_indices: tuple[table_pb2.IndexMetadata, ...] = ()


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Fragments whose live rows are now, in the same order, the rows of other fragments."""

    old_fragments: tuple[table_pb2.DataFragment, ...]
    new_fragments: tuple[table_pb2.DataFragment, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Compacts: moves rows to new fragments, whose ids were reserved and are final."""

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[transaction_pb2.Transaction.Rewrite.RewrittenIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """Gives all fragments and the schema anew, rows and fragment ids staying what they were."""

    fragments: tuple[table_pb2.DataFragment, ...]
    fields: tuple[file_pb2.Field, ...]
    schema_metadata: Mapping[str, bytes] = field(default_factory=dict)
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    """Changes the schema without touching data: drops and renames."""

    fields: tuple[file_pb2.Field, ...]
    preserves_nullability: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """Makes an old version the newest."""

    version: int


@dataclass(frozen=True, slots=True)
class ReserveFragments:
    """Takes fragment ids out of circulation, for a compaction that comes later."""

    num_fragments: int


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """Changes a map of texts.

    A value of None deletes the key; ``replaces`` means that the entries are the whole new map.
    """

    entries: Mapping[str, str | None]
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Changes the table's configuration and metadata."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    field_metadata: Mapping[int, MapUpdate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replacement:
    """The file that now holds some columns of a fragment."""

    fragment_id: int
    new_file: table_pb2.DataFile


@dataclass(frozen=True, slots=True)
class DataReplacement:
    """Replaces columns of fragments by new files."""

    replacements: tuple[Replacement, ...]


@dataclass(frozen=True, slots=True)
class Clone:
    """Makes a dataset, or a branch, that refers to the files of another one."""

    is_shallow: bool
    ref_name: str | None
    ref_version: int
    ref_path: str
    branch_name: str | None


@dataclass(frozen=True, slots=True)
class UpdateBases:
    """Adds base paths."""

    new_bases: tuple[table_pb2.BasePath, ...]


@dataclass(frozen=True, slots=True)
class UnknownOperation:
    """An operation this release cannot judge; it conflicts with every other."""

    name: str


Operation = (
    Append
    | Overwrite
    | Delete
    | Update
    | CreateIndex
    | Rewrite
    | Merge
    | Project
    | Restore
    | ReserveFragments
    | UpdateConfig
    | DataReplacement
    | Clone
    | UpdateBases
    | UnknownOperation
)


def _new_uuid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Transaction:
    """An operation, and the version whose rows it was computed from.

    ``read_version`` is 0 for the operation that makes the dataset.
    """

    read_version: int
    operation: Operation
    uuid: str = field(default_factory=_new_uuid)
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Name of the transaction's file, as a manifest gives it."""
        return f"{self.read_version}-{self.uuid}.txn"


def transaction_path(file_name: str) -> str:
    """Return the path of a transaction's file, relative to the root of the dataset."""
    return f"{TRANSACTIONS_FOLDER}/{file_name}"
