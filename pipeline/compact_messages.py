"""Bins and what came of them as small messages: plain JSON, as workers return them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFileError
from lance_core.ids import FragmentId
from lance_core.operations.compact_group import RewriteResult
from lance_core.operations.compact_indices import IndexTreatment
from lance_core.operations.compact_plan import CompactionOptions, CompactionTask
from lance_core.proto import table_pb2
from pipeline.compact_plan import Bin

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATH = "a message of a compaction"


def bin_to_bytes(each: Bin) -> bytes:
    """Return a bin as an item; the options are known to whoever works on it."""
    return json.dumps(
        {
            "read_version": each.task.read_version,
            "fragments": list(each.task.fragment_ids),
            "treatment": each.treatment.value,
            "rows": each.num_rows,
        }
    ).encode()


def bin_from_bytes(item: bytes, options: CompactionOptions) -> Bin:
    """Return the bin of an item.

    Raises
    ------
    CorruptFileError
        It is none.
    """
    try:
        found = json.loads(item)
        ids = tuple(FragmentId(int(each)) for each in found["fragments"])
        task = CompactionTask(int(found["read_version"]), ids, options)
        return Bin(task, IndexTreatment(found["treatment"]), int(found["rows"]))
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(_PATH, f"is no bin: {error}") from error


def result_to_bytes(treatment: IndexTreatment, result: RewriteResult) -> bytes:
    """Return what came of a bin, and what becomes of the indices on it."""
    return json.dumps(
        {
            "treatment": treatment.value,
            "read_version": result.read_version,
            "old": _texts(each.SerializeToString() for each in result.old_fragments),
            "new": _texts(each.SerializeToString() for each in result.new_fragments),
            "deleted": {str(key): _text(data) for key, data in result.deleted.items()},
        }
    ).encode()


def result_from_bytes(data: bytes) -> tuple[IndexTreatment, RewriteResult]:
    """Return what `result_to_bytes` was given.

    Raises
    ------
    CorruptFileError
        It is no such result.
    """
    try:
        found = json.loads(data)
        result = RewriteResult(
            int(found["read_version"]),
            tuple(_fragment(each) for each in found["old"]),
            tuple(_fragment(each) for each in found["new"]),
            {int(key): _bytes(text) for key, text in found["deleted"].items()},
        )
        return IndexTreatment(found["treatment"]), result
    except (ValueError, TypeError, KeyError, AttributeError, DecodeError) as error:
        raise CorruptFileError(_PATH, f"is no result: {error}") from error


def _fragment(text: str) -> table_pb2.DataFragment:
    return table_pb2.DataFragment.FromString(_bytes(text))


def _texts(parts: Iterable[bytes]) -> list[str]:
    return [_text(each) for each in parts]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
