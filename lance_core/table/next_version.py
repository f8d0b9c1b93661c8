"""The bytes of the next version: the newest one, an operation applied, and when and by whom."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as version_of_package
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError
from lance_core.proto import table_pb2
from lance_core.table.build_manifest import Draft, apply_operation
from lance_core.table.flags import Feature
from lance_core.table.manifest_bytes import manifest_to_bytes
from lance_core.table.naming import NamingScheme
from lance_core.table.transaction import Overwrite
from lance_core.table.transaction_to_proto import transaction_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyroaring import BitMap

    from lance_core.table.manifest import Manifest
    from lance_core.table.transaction import Transaction

_PACKAGE = "lance-serve"
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class NewDataset:
    """What is settled when a dataset is made, and cannot be changed later.

    Parameters
    ----------
    file_version
        Version of data files, until an overwrite brings others.
    scheme
        Names of manifests; ``V1`` only for readers that know no other.
    has_stable_row_ids
        Whether rows get ids that they keep when they are updated or compacted.
    """

    file_version: str = "2.2"
    scheme: NamingScheme = NamingScheme.V2
    has_stable_row_ids: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Addition:
    """What an operation needs besides the newest version; see `Draft`."""

    fold: Callable[[BitMap], BitMap]
    restored: Manifest | None = None
    reuse_entry: table_pb2.IndexMetadata | None = None


def first_message(transaction: Transaction, new: NewDataset) -> table_pb2.Manifest:
    """Return the empty version that the operation of a new dataset is applied to.

    Raises
    ------
    InvalidRequestError
        The operation does not make a dataset.
    """
    if not isinstance(transaction.operation, Overwrite):
        name = type(transaction.operation).__name__
        raise InvalidRequestError(f"{name} needs a dataset; make one by an overwrite")
    flags = int(Feature.STABLE_ROW_IDS) if new.has_stable_row_ids else 0
    return table_pb2.Manifest(
        data_format=table_pb2.DataStorageFormat(file_format="lance", version=new.file_version),
        reader_feature_flags=flags,
        writer_feature_flags=flags,
    )


def next_version(
    base: Manifest | None,
    transaction: Transaction,
    version: int,
    addition: Addition,
    new: NewDataset,
) -> bytes:
    """Return the manifest file of the next version.

    Parameters
    ----------
    base
        The newest version; it is not changed. None = there is no dataset yet.
    transaction
        What to apply, rebased on ``base``.
    version
        Number of the next version.
    addition
        What the operation needs besides.
    new
        How to make the dataset if there is none.

    Raises
    ------
    InvalidRequestError
        The operation cannot be applied.
    """
    message = table_pb2.Manifest()
    section = table_pb2.IndexSection()
    if base is None:
        message = first_message(transaction, new)
    else:
        message.CopyFrom(base.message)
        section.CopyFrom(base.index_section)
    draft = Draft(
        message,
        version,
        list(section.indices),
        addition.fold,
        transaction.read_version,
        addition.restored,
        addition.reuse_entry,
    )
    apply_operation(draft, transaction.operation)
    stamp(draft.message, version)
    names_file = not draft.message.writer_feature_flags & Feature.NO_TRANSACTION_FILES
    draft.message.transaction_file = transaction.file_name if names_file else ""
    return manifest_to_bytes(draft.message, draft.indices, transaction_to_bytes(transaction))


def stamp(message: table_pb2.Manifest, version: int) -> None:
    """Say in a manifest which version it is, and when and by whom it was made."""
    message.version = version
    message.timestamp.seconds, message.timestamp.nanos = divmod(time.time_ns(), _SECOND_NS)
    message.writer_version.CopyFrom(
        table_pb2.WriterVersion(library=_PACKAGE, version=_own_version())
    )


@cache
def _own_version() -> str:
    return version_of_package(_PACKAGE)
