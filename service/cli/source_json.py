"""Rows of files of JSON lines: one object per line, whatever keys later lines bring."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BLOCK_BYTES = 4 << 20
_LONGEST_LINE = 256 << 20


class JsonLines:
    """A file of JSON lines; read once to learn all keys and types, and once more for the rows.

    Parameters
    ----------
    path
        The file, which may be compressed.
    types
        Types of columns that are known already.

    Raises
    ------
    InvalidRequestError
        A line is no JSON object, or values of one key do not go together.
    """

    def __init__(self, path: str, types: Mapping[str, pa.DataType]) -> None:
        self._path = path
        found = pa.schema([])
        self._num_rows = 0
        for first, rows in self._blocks():
            try:
                found = pa.unify_schemas(
                    [found, pa.schema(list(pa.array(rows).type))], promote_options="permissive"
                )
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                self._fail(first, error)
            self._num_rows += len(rows)
        for field in found:
            if field.name in types:
                self._require_room(field.name, field.type, types[field.name])
        self.schema = pa.schema(
            [field.with_type(types.get(field.name, field.type)) for field in found]
        )

    def count_rows(self) -> int:
        """Return the number of rows."""
        return self._num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; errors as those of making this."""
        kind = pa.struct(list(self.schema))
        for first, rows in self._blocks():
            try:
                array = pa.array(rows, kind)
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                self._fail(first, error)
            yield pa.RecordBatch.from_arrays(array.flatten(), schema=self.schema)

    def _blocks(self) -> Iterator[tuple[int, list[dict[str, object]]]]:
        """Yield the objects of some lines, with the number of the first of them."""
        number = 1
        for lines in self._lines():
            rows = [
                self._parsed(line, number + place)
                for place, line in enumerate(lines)
                if line.strip() != b""
            ]
            if rows:
                yield number, rows
            number += len(lines)

    def _lines(self) -> Iterator[list[bytes]]:
        rest = b""
        with pa.input_stream(self._path, compression="detect") as stream:
            while block := stream.read(_BLOCK_BYTES):
                *lines, rest = (rest + block).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    raise InvalidRequestError(
                        f"{self._path}: a line has over {_LONGEST_LINE} bytes"
                    )
                yield lines
        yield [rest]

    def _parsed(self, line: bytes, number: int) -> dict[str, object]:
        try:
            row = json.loads(line, parse_constant=_refuse_constant)
        except ValueError as error:
            raise InvalidRequestError(
                f"{self._path}, line {number}: is no JSON object: {error}"
            ) from error
        if not isinstance(row, dict):
            raise InvalidRequestError(
                f"{self._path}, line {number}: is no JSON object, which each line has to be"
            )
        return row

    def _require_room(self, path: str, given: pa.DataType, known: pa.DataType) -> None:
        """Refuse parts of nested values that the known type has no place for."""
        if pa.types.is_struct(given) and pa.types.is_struct(known):
            for part in given:
                place = known.get_field_index(part.name)
                if place < 0:
                    raise InvalidRequestError(
                        f"{self._path}: the table has no place for {path}.{part.name}"
                    )
                self._require_room(f"{path}.{part.name}", part.type, known.field(place).type)
        elif pa.types.is_list(given) and hasattr(known, "value_type"):
            self._require_room(f"{path}[]", given.value_type, known.value_type)

    def _fail(self, first: int, error: Exception) -> NoReturn:
        raise InvalidRequestError(f"{self._path}, from line {first} on: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
