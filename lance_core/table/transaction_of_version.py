"""Which transaction made a version."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from lance_core.errors import CorruptFileError, ObjectNotFoundError
from lance_core.table.transaction import Transaction, UnknownOperation, transaction_path
from lance_core.table.transaction_from_proto import transaction_from_bytes

if TYPE_CHECKING:
    from lance_core.io.scheduler import RangeScheduler
    from lance_core.io.store import ObjectMeta
    from lance_core.table.manifest import Manifest

_LENGTH = struct.Struct("<I")
_FIRST_READ_BYTES = 64 << 10
_MISSING = Transaction(0, UnknownOperation("no transaction"), uuid="")


def transaction_of(scheduler: RangeScheduler, manifest: Manifest, meta: ObjectMeta) -> Transaction:
    """Read the transaction of a version, from its manifest or from the transaction's file.

    Parameters
    ----------
    scheduler
        Reads from the root of the dataset.
    manifest
        The version.
    meta
        Its manifest as the store lists it.

    Returns
    -------
    Transaction
        With `UnknownOperation` where the version has none, or its file is gone: what made it cannot
        be judged then.

    Raises
    ------
    CorruptFileError
        The section lies outside the manifest, or holds no transaction.

    Notes
    -----
    Lance table format, sections "Manifest file container" and "Committing".
    """
    inline = inline_transaction(scheduler, manifest, meta)
    if inline is not None:
        return transaction_from_bytes(inline, meta.path)
    name = manifest.message.transaction_file
    return _from_file(scheduler, name) if name else _MISSING


def inline_transaction(
    scheduler: RangeScheduler, manifest: Manifest, meta: ObjectMeta
) -> memoryview | None:
    """Read the bytes of the transaction in a manifest, None if there is none; see `transaction_of`.

    Raises ``CorruptFileError`` where the section lies outside the manifest.
    """
    message = manifest.message
    if message.HasField("transaction_section"):
        return _section(scheduler, meta, message.transaction_section)
    if message.HasField("transaction_section_deprecated"):
        return _section(scheduler, meta, message.transaction_section_deprecated)
    return None


def _section(scheduler: RangeScheduler, meta: ObjectMeta, start: int) -> memoryview:
    end = min(start + _FIRST_READ_BYTES, meta.size)
    if end - start < _LENGTH.size:
        raise CorruptFileError(meta.path, "the transaction lies behind the end", offset=start)
    (data,) = scheduler.read(meta.path, [(start, end)])
    (length,) = _LENGTH.unpack(data[: _LENGTH.size])
    begin = start + _LENGTH.size
    if begin + length > meta.size:
        raise CorruptFileError(
            meta.path, f"a transaction of {length} bytes runs past the end", offset=start
        )
    if begin + length > end:
        (data,) = scheduler.read(meta.path, [(start, begin + length)])
    return data[_LENGTH.size : _LENGTH.size + length]


def _from_file(scheduler: RangeScheduler, name: str) -> Transaction:
    path = transaction_path(name)
    try:
        tail = scheduler.tail(path, None, _FIRST_READ_BYTES)
        head = scheduler.read(path, [(0, tail.start)])[0]
    except ObjectNotFoundError:
        return _MISSING
    return transaction_from_bytes(b"".join((head, tail.view)), path)
