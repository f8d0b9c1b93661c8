"""JSONB, the bytes of JSON columns, and JSON text (file format, section 2.5).

A container is a header word, entry words and the payloads in entry order, all big endian. Texts
are spelt as pylance spells them: no spaces, keys sorted by their bytes, doubles in the shortest
form that reads back equal, NaN and infinities as ``null``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_core.encodings.from_arrow import bytes_of, offsets_of, validity_of
from lance_core.errors import InvalidRequestError
from lance_core.kernels import (
    json_parse as parse,
    json_scalars as scalars,
    jsonb_measure as measure,
)
from lance_core.kernels.json_build import SOUND, build_documents, measure_nodes
from lance_core.kernels.json_tape import AT, FORM, NODE_WORDS, NUMBER_FORM, SIZE
from lance_core.kernels.jsonb_doubles import SLOT, spell_doubles
from lance_core.kernels.jsonb_format import DOUBLE, DOUBLE_BYTES, WORD_BYTES
from lance_core.kernels.jsonb_spell import SPELL_WORDS, spell_documents
from lance_core.kernels.memory import address_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lance_core.encodings.place import Place

_BYTES_AT_ONCE = 1 << 20
"""Text that is parsed at once; what is made of it on the way takes up to twenty times as much."""
_MAX_DEPTH = 512
"""Nesting of texts that is taken; pylance 14.0.2 crashes when it reads 5000."""
_MAX_TEXT_BYTES = 2**31 - 1
_BYTES_OF_DOUBLE = WORD_BYTES + 1 + DOUBLE_BYTES
_BYTES_OF_NESTED = 2 * WORD_BYTES

_CORRUPT = {
    measure.CUT_OFF: "a JSON document is cut off",
    measure.BAD_HEADER: "a JSON document begins with {:#010x}",
    measure.TOO_MANY_ENTRIES: "a JSON document has no room for the {} entries it claims",
    measure.VALUE_LEAVES: "a value leaves its JSON document",
    measure.BYTES_BEHIND: "{} bytes behind the values of a JSON document",
    measure.KEY_KIND: "a JSON key of kind {}",
    measure.WORD_WITH_BYTES: "a JSON null, true or false of {} bytes",
    measure.EMPTY_NUMBER: "a JSON number of no bytes",
    measure.NUMBER_TAG: "a JSON number of tag {:#04x} with bytes that do not fit it",
}
_NO_JSON = {
    scalars.NO_VALUE: "a value is expected",
    scalars.END_MISSING: "an array or object does not end",
    scalars.NO_QUOTE: "a string does not end",
    scalars.BAD_CONTROL: "a control character in a string must be escaped",
    scalars.BAD_ESCAPE: "a backslash in a string must begin an escape",
    scalars.BAD_NUMBER: "a number lacks digits",
    parse.NO_KEY: "a key in double quotes is expected",
    parse.NO_COLON: "a colon is expected",
    parse.NO_COMMA: "a comma or the end of the array or object is expected",
    parse.SOMETHING_BEHIND: "something follows the value",
    parse.TOO_DEEP: f"it is nested too deeply, in more than {_MAX_DEPTH} levels",
}


def to_text(documents: pa.Array, place: Place) -> pa.Array:
    """Spell stored documents as text.

    Parameters
    ----------
    documents
        Binary or large binary, one JSONB document per value; nulls stay null.
    place
        The column, for errors.

    Returns
    -------
    pa.Array
        Strings, as many as documents.

    Raises
    ------
    CorruptFileError
        A document contradicts the format.
    UnsupportedFeatureError
        It holds a kind of value that JSON text does not know, or the text is more than 2 GiB.
    """
    offsets = offsets_of(documents)
    address = address_of(bytes_of(documents.buffers()[2]))
    is_valid = _validity(documents)
    depth = int(np.diff(offsets).max(initial=0)) // _BYTES_OF_NESTED + 2
    doubles = np.empty(int(offsets[-1] - offsets[0]) // _BYTES_OF_DOUBLE, np.uint64)
    state = np.zeros(measure.STATE_WORDS, np.int64)
    stack = np.empty(depth * measure.FRAME_WORDS, np.int64)
    total = measure.measure_documents(address, offsets, is_valid, doubles, stack, state)
    if total < 0:
        fault, detail = int(state[measure.FAULT]), int(state[measure.DETAIL])
        if fault == measure.VALUE_KIND:
            raise place.unsupported(f"a JSON value of kind {detail}")
        raise place.corrupt(_CORRUPT[fault].format(detail))
    spelt = _spell(doubles[: state[measure.NUM_DOUBLES]].view(np.float64))
    total += spelt.num_bytes
    if total > _MAX_TEXT_BYTES:
        raise place.unsupported("JSON of more than 2 GiB of text in one array")
    ends = np.empty(len(documents) + 1, np.int32)
    out = np.empty(total, np.uint8)
    stack, num_done = np.empty(depth * SPELL_WORDS, np.int64), np.zeros(1, np.int64)
    texts, sizes = spelt.texts, spelt.sizes
    spell_documents(address, offsets, is_valid, texts, sizes, num_done, stack, ends, out)
    return _checked_text(documents, ends, out, place)


@dataclass(frozen=True, slots=True, eq=False)
class _Spelt:
    """Texts of doubles, in slots: shapes ``(n, SLOT)`` and ``(n,)``."""

    texts: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    num_bytes: int


def _spell(doubles: NDArray[np.float64]) -> _Spelt:
    texts = np.empty((len(doubles), SLOT), np.uint8)
    sizes = np.empty(len(doubles), np.int64)
    found = pa.array(doubles).cast(pa.string())
    address = address_of(bytes_of(found.buffers()[2]))
    return _Spelt(texts, sizes, spell_doubles(address, offsets_of(found), texts, sizes))


def _checked_text(
    documents: pa.Array, ends: NDArray[np.int32], out: NDArray[np.uint8], place: Place
) -> pa.Array:
    buffers = [_bitmap(documents), pa.py_buffer(ends), pa.py_buffer(out)]
    text = pa.Array.from_buffers(pa.string(), len(documents), buffers)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        raise place.corrupt(f"a JSON string is not UTF-8: {error}") from None
    return text


def from_text(texts: pa.Array, column: str) -> pa.Array:
    """Turn JSON texts into documents as they are stored; the inverse of `to_text`.

    Parameters
    ----------
    texts
        Strings or large strings, or ``arrow.json`` of these; nulls stay null.
    column
        Name of the column, for errors.

    Returns
    -------
    pa.Array
        Large binary, as many as texts.

    Raises
    ------
    InvalidRequestError
        A text is no JSON, an object has a key twice, or a number is beyond the doubles: names
        column, row and place.

    Notes
    -----
    Integers beyond 64 bits become doubles and half a surrogate pair its escape (observed with
    pylance 14.0.2, which also takes some texts that are no JSON, and makes null of ``1e400``).
    """
    plain = texts.storage if isinstance(texts.type, pa.BaseExtensionType) else texts
    wide = plain.cast(pa.large_string())
    parts = [
        _documents(wide.slice(start, stop - start), column, start) for start, stop in _slices(wide)
    ]
    return pa.concat_arrays(parts) if len(parts) > 0 else pa.array([], pa.large_binary())


def _slices(texts: pa.Array) -> Iterator[tuple[int, int]]:
    """Cut rows where about ``_BYTES_AT_ONCE`` are full; a row may have more."""
    offsets = offsets_of(texts)
    start = 0
    while start < len(texts):
        full = int(np.searchsorted(offsets, offsets[start] + _BYTES_AT_ONCE, "right")) - 1
        stop = min(max(full, start + 1), len(texts))
        yield start, stop
        start = stop


def _documents(texts: pa.Array, column: str, first_row: int) -> pa.Array:
    """Parse and build the documents of some rows."""
    offsets = offsets_of(texts)
    data = bytes_of(texts.buffers()[2])
    num_bytes = int(offsets[-1] - offsets[0])
    num_nodes = len(texts) + _num_marks(data[int(offsets[0]) : int(offsets[-1])])
    tape = np.empty((num_nodes, NODE_WORDS), np.int64)
    roots = np.empty(len(texts) + 1, np.int64)
    strings, numbers = np.empty(num_bytes, np.uint8), np.empty(num_bytes, np.uint8)
    number_ends = np.empty(num_nodes + 1, np.int64)
    state = np.zeros(scalars.STATE_WORDS, np.int64)
    done = parse.parse_documents(
        address_of(data),
        offsets,
        _validity(texts),
        tape,
        roots,
        strings,
        numbers,
        number_ends,
        np.empty(_MAX_DEPTH, np.int64),
        state,
    )
    if done < len(texts):
        at = len(texts[done].as_buffer()[: state[scalars.FAULT_AT]].to_pybytes().decode())
        raise InvalidRequestError(
            f"column {column!r}, row {first_row + done}: no JSON:"
            f" {_NO_JSON[int(state[scalars.FAULT])]} at character {at}"
        )
    tape = tape[: state[scalars.NUM_NODES]]
    doubles = _doubles(numbers, number_ends[: state[scalars.NUM_NUMBERS] + 1])
    return _Tape(tape, roots, strings, doubles, column, first_row).documents(texts)


def _num_marks(data: NDArray[np.uint8]) -> int:
    counts = np.bincount(data, minlength=256)
    return int(counts[list(b",:[{")].sum())


def _doubles(numbers: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(numbers)]
    texts = pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)
    return np.asarray(texts.cast(pa.float64()).to_numpy(), np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Tape:
    """Texts that were parsed: nodes, and the strings and doubles they refer to."""

    nodes: NDArray[np.int64]
    roots: NDArray[np.int64]
    strings: NDArray[np.uint8]
    doubles: NDArray[np.float64]
    column: str
    first_row: int

    def documents(self, texts: pa.Array) -> pa.Array:
        """Build the documents; what is null in ``texts`` is null."""
        infinite = np.flatnonzero(np.isinf(self.doubles))
        if len(infinite) > 0:
            is_double = self.nodes[:, FORM] == NUMBER_FORM + DOUBLE
            node = int(np.flatnonzero(is_double)[infinite[0]])
            raise self._refused(node, "a number is beyond the doubles; store it as a string")
        offsets = np.empty(len(self.roots), np.int64)
        large = measure_nodes(self.nodes, self.roots, offsets)
        if large != SOUND:
            raise self._refused(large, "a JSON value of 256 MiB and more")
        out = np.empty(int(offsets[-1]), np.uint8)
        bits = self.doubles.view(np.uint64)
        scratch = np.empty((2, len(self.nodes)), np.int64)
        twice = build_documents(self.nodes, self.roots, self.strings, bits, offsets, scratch, out)
        if twice != SOUND:
            start, size = self.nodes[twice, AT], self.nodes[twice, SIZE]
            key = str(self.strings[start : start + size].data, "utf-8")
            raise self._refused(twice, f"an object has the key {key!r} twice")
        buffers = [_bitmap(texts), pa.py_buffer(offsets), pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)

    def _refused(self, node: int, why: str) -> InvalidRequestError:
        row = self.first_row + int(np.searchsorted(self.roots, node, "right")) - 1
        return InvalidRequestError(f"column {self.column!r}, row {row}: {why}")


def _validity(array: pa.Array) -> NDArray[np.bool_]:
    found = validity_of(array)
    return np.ones(len(array), np.bool_) if found is None else found


def _bitmap(array: pa.Array) -> pa.Buffer | None:
    found = validity_of(array)
    return None if found is None else pa.py_buffer(np.packbits(found, bitorder="little"))
