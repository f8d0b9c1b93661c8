"""What callers hand over, checked in one place: what is wrong says what would work."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.errors import InvalidRequestError
from lance_core.kernels.direct_rows import are_inside
from lance_core.schema.tree import LanceSchema

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WHOLE_NUMBERS = frozenset("iu")
_MOST = 2**63 - 1
_FEW_ROWS = 1000
"""So few that a kernel may look at them without letting go of the GIL."""
_OBJECTS = "O"
"""How memoryview names arrays of Python objects, whose bytes are addresses."""


def checked_location(location: object) -> str:
    """Return a path or URI as text, with ``~`` expanded in local paths."""
    plain = fspath(location) if isinstance(location, PathLike) else location
    if not isinstance(plain, str):
        raise InvalidRequestError(
            f"a file is named by a path or URI as str or pathlib.Path, not by {_kind(plain)}"
        )
    checked_text("a path", plain)
    if not plain.startswith("~"):
        return plain
    try:
        return str(Path(plain).expanduser())
    except RuntimeError:
        raise InvalidRequestError(f'"{plain}": there is no such home; write the path out') from None


def checked_options(options: object) -> Mapping[str, str] | None:
    """Return storage options: names and values are texts."""
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise InvalidRequestError(
            f"storage_options are a mapping of names to texts, not {_kind(options)}"
        )
    for name, value in options.items():
        checked_text("the name of a storage option", name)
        checked_text(f"storage option {name!r}", value)
    return options


def checked_text(what: str, text: object) -> str:
    """Return a text that can be stored as UTF-8."""
    if not isinstance(text, str):
        raise InvalidRequestError(f"{what} is a str, not {_kind(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{what} has half a surrogate pair: {text!a}") from None
    return text


def checked_number(what: str, number: object, least: int, most: int = _MOST) -> int:
    """Return a whole number between ``least`` and ``most``."""
    try:
        found = None if isinstance(number, bool) else operator.index(number)  # type: ignore[arg-type]  # caught
    except TypeError:
        found = None
    if found is None:
        raise InvalidRequestError(f"{what} is a whole number, not {_kind(number)}")
    if not least <= found <= most:
        raise InvalidRequestError(f"{what} is {found}; it may be {least} to {most}")
    return found


def checked_flag(what: str, flag: object) -> bool:
    """Return a truth value; what only counts as one, as "no" counts as true, is none."""
    if not isinstance(flag, bool | np.bool_):
        raise InvalidRequestError(f"{what} is True or False, not {_kind(flag)}")
    return bool(flag)


def checked_ranges(ranges: object, num_rows: int, path: str) -> list[tuple[int, int]]:
    """Return row ranges as pairs inside the file."""
    if not isinstance(ranges, Iterable) or isinstance(ranges, str | bytes):
        raise InvalidRequestError(
            f"ranges are a list of pairs such as [(0, 10)], not {_kind(ranges)}"
        )
    return [_checked_range(each, num_rows, path) for each in ranges]


def _checked_range(pair: object, num_rows: int, path: str) -> tuple[int, int]:
    try:
        start, stop = map(operator.index, pair)  # type: ignore[call-overload]  # caught
    except (TypeError, ValueError):
        raise InvalidRequestError(
            f"a range is a pair of whole numbers (start, stop), not {pair!r}"
        ) from None
    if not 0 <= start <= stop <= num_rows:
        raise InvalidRequestError(f"rows {start} to {stop} are not inside the {num_rows} of {path}")
    return start, stop


def checked_rows(offsets: object, num_rows: int, path: str) -> NDArray[np.int64]:
    """Return a copy of row numbers inside the file, because kernels take writable arrays only."""
    try:
        rows = np.array(offsets)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"rows to take are a list of whole numbers: {error}") from None
    if rows.ndim != 1 or (rows.dtype.kind not in _WHOLE_NUMBERS and len(rows) > 0):
        raise InvalidRequestError(
            f"rows to take are a list of whole numbers, not {rows.ndim} dimensions of {rows.dtype}"
        )
    if not _are_inside(rows, num_rows):
        raise InvalidRequestError(
            f"rows {rows.min()} to {rows.max()} are not inside the {num_rows} of {path}"
        )
    return rows.astype(np.int64, copy=False)


def _are_inside(rows: NDArray[np.integer], num_rows: int) -> bool:
    if len(rows) <= _FEW_ROWS and rows.dtype == np.int64:
        return are_inside(rows.astype(np.int64, copy=False), num_rows)
    return len(rows) == 0 or (int(rows.min()) >= 0 and int(rows.max()) < num_rows)


def checked_list(what: str, items: object, example: str = '["id"]') -> list[object]:
    """Return the items of a list; a text, which has characters, is none."""
    if isinstance(items, Iterable) and not isinstance(items, str | bytes):
        try:
            return list(items)
        except TypeError:  # an array of numpy without dimensions
            pass
    raise InvalidRequestError(f"{what} are a list such as {example}, not {_kind(items)}")


def checked_schema(schema: object) -> pa.Schema | LanceSchema:
    """Return a schema that a file can be made for."""
    if not isinstance(schema, pa.Schema | LanceSchema):
        raise InvalidRequestError(
            f"a file is made for a pyarrow.Schema such as table.schema, not for {_kind(schema)}"
        )
    return schema


def checked_batch(batch: object) -> pa.RecordBatch | pa.Table:
    """Return rows that have columns."""
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise InvalidRequestError(
            "rows are written from a pyarrow.RecordBatch or Table (see pyarrow.table), not from"
            f" {_kind(batch)}"
        )
    return batch


def checked_bytes(data: object) -> memoryview:
    """Return bytes that lie one after another."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]  # caught
    except (TypeError, ValueError):
        raise InvalidRequestError(f"a buffer is made of bytes, not of {_kind(data)}") from None
    if not view.c_contiguous or view.format == _OBJECTS:
        raise InvalidRequestError("a buffer is made of bytes that lie one after another")
    return view


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
