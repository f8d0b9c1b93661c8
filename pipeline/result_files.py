"""Which files of the dataset the results of a job name, by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.operations.cleanup_references import key_of
from pipeline import build, compact, merge, optimize, refresh, trim
from pipeline.compact_messages import result_from_bytes
from pipeline.index_items import segment_from_bytes
from pipeline.ingest_items import Written
from pipeline.written_files import data_files, segment_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.written_files import WrittenFile


def _of_rows(result: bytes) -> list[WrittenFile]:
    return data_files(Written.of(result).fragments)


def _of_bin(result: bytes) -> list[WrittenFile]:
    return data_files(result_from_bytes(result)[1].new_fragments)


def _of_segment(result: bytes) -> list[WrittenFile]:
    return segment_files(segment_from_bytes(result))


_FILES: Mapping[str, Callable[[bytes], list[WrittenFile]]] = {
    "ingest": _of_rows,
    build.KIND: _of_segment,
    merge.KIND: _of_segment,
    refresh.KIND: _of_segment,
    optimize.KIND: _of_segment,
    compact.KIND: _of_bin,
    trim.KIND: trim.files_of,
}


def keys_of_result(kind: str, result: bytes) -> frozenset[str]:
    """Return the keys of files, as `key_of` has them, that a result names.

    None of kinds that write no files of a dataset.

    Raises
    ------
    CorruptFileError
        The result is none of that kind.
    """
    files_of = _FILES.get(kind)
    return frozenset() if files_of is None else frozenset(key_of(f.path) for f in files_of(result))
