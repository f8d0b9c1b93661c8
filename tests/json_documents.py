"""JSONB one document at a time in plain Python: what the kernels are compared with."""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING

from lance_core.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance_core.encodings.place import Place

_SCALAR, _ARRAY, _OBJECT = 0x20000000, 0x80000000, 0x40000000
_CONTAINER_KIND, _CONTAINER_SIZE = 0xE0000000, 0x1FFFFFFF
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _NESTED = range(6)
_WORDS = {_NULL: "null", _FALSE: "false", _TRUE: "true"}
_WORD_OF: dict[object, int] = {None: _NULL, False: _FALSE, True: _TRUE}
_KIND_SHIFT, _LENGTH = 28, 0x0FFFFFFF
_ZERO, _NAN, _INFINITY, _NEGATIVE_INFINITY = 0x00, 0x10, 0x20, 0x30
_NEGATIVE, _POSITIVE, _DOUBLE = 0x40, 0x50, 0x60
_INTEGER_BYTES = (1, 2, 4, 8)
_LARGEST_DIGITS = 20
"""Decimal digits of the largest unsigned integer of 64 bits; longer ones become doubles."""
_EXPONENT_FROM = -5
"""Doubles below ten to this power are spelt with an exponent."""


def document_text(document: bytes, place: Place) -> str:
    """Spell one document as text, or say what is wrong with it."""
    parts: list[str] = []
    waiting: list[str | memoryview] = [memoryview(document)]
    while len(waiting) > 0:  # a loop, not recursion: documents may be nested as deep as they like
        part = waiting.pop()
        if isinstance(part, str):
            parts.append(part)
        else:
            waiting.extend(reversed(_spell(part, place)))
    return "".join(parts)


def _spell(container: memoryview, place: Place) -> list[str | memoryview]:
    """Return the text of a container, with the containers in it as they are."""
    if len(container) < struct.calcsize(">I"):
        raise place.corrupt("a JSON document is cut off")
    (header,) = struct.unpack_from(">I", container)
    kind, size = header & _CONTAINER_KIND, header & _CONTAINER_SIZE
    if kind == _SCALAR and size == 0:
        return _values(_entries(container, 1, place), place)
    if kind == _ARRAY:
        values = _values(_entries(container, size, place), place)
        return ["[", *_between(values, [","] * size), "]"]
    if kind == _OBJECT:
        entries = _entries(container, 2 * size, place)
        keys = [f",{_key(*entry, place)}:" for entry in entries[:size]]
        return ["{", *_between(_values(entries[size:], place), keys), "}"]
    raise place.corrupt(f"a JSON document begins with {header:#010x}")


def _between(values: list[str | memoryview], before: list[str]) -> Iterable[str | memoryview]:
    """Put ``before[i]`` before ``values[i]``; the first loses its comma."""
    for position, (text, value) in enumerate(zip(before, values, strict=True)):
        yield text[1:] if position == 0 else text
        yield value


def _entries(container: memoryview, count: int, place: Place) -> list[tuple[int, memoryview]]:
    """Return kind and payload of each entry; the payloads fill the container."""
    start = 4 * (count + 1)
    if len(container) < start:
        raise place.corrupt(f"a JSON document of {len(container)} bytes claims {count} entries")
    entries = []
    for word in struct.unpack_from(f">{count}I", container, 4):
        end = start + (word & _LENGTH)
        if end > len(container):
            raise place.corrupt("a value leaves its JSON document")
        entries.append((word >> _KIND_SHIFT, container[start:end]))
        start = end
    if start != len(container):
        raise place.corrupt(f"{len(container) - start} bytes behind the values of a JSON document")
    return entries


def _key(kind: int, payload: memoryview, place: Place) -> str:
    if kind != _STRING:
        raise place.corrupt(f"a JSON key of kind {kind}")
    return _string(payload, place)


def _values(entries: list[tuple[int, memoryview]], place: Place) -> list[str | memoryview]:
    return [_value(kind, payload, place) for kind, payload in entries]


def _value(kind: int, payload: memoryview, place: Place) -> str | memoryview:
    if kind == _STRING:
        return _string(payload, place)
    if kind == _NUMBER:
        return _number(payload, place)
    if kind == _NESTED:
        return payload
    if kind not in _WORDS:
        raise place.unsupported(f"a JSON value of kind {kind}")
    if len(payload) > 0:
        raise place.corrupt(f"a JSON {_WORDS[kind]} of {len(payload)} bytes")
    return _WORDS[kind]


def _string(payload: memoryview, place: Place) -> str:
    try:
        return _ENCODER.encode(str(payload, "utf-8"))
    except UnicodeDecodeError as error:
        raise place.corrupt(f"a JSON string is not UTF-8: {error}") from None


def _number(payload: memoryview, place: Place) -> str:
    if len(payload) == 0:
        raise place.corrupt("a JSON number of no bytes")
    tag, digits = payload[0], payload[1:]
    if tag in {_NEGATIVE, _POSITIVE} and len(digits) in _INTEGER_BYTES:
        return str(int.from_bytes(digits, "big", signed=tag == _NEGATIVE))
    if tag == _DOUBLE and len(digits) == struct.calcsize(">d"):
        return _double(struct.unpack(">d", digits)[0])
    if tag not in {_ZERO, _NAN, _INFINITY, _NEGATIVE_INFINITY} or len(digits) > 0:
        raise place.corrupt(f"a JSON number of tag {tag:#04x} and {len(payload)} bytes")
    return "0" if tag == _ZERO else "null"


def _double(value: float) -> str:
    """Spell a double; Python does it in the same way but for exponents."""
    if not math.isfinite(value):
        return "null"
    mantissa, mark, exponent = repr(value).partition("e")
    if mark == "":
        return mantissa
    power = int(exponent)
    if power == _EXPONENT_FROM:
        digits = mantissa.lstrip("-").replace(".", "")
        return f"{'-' if value < 0 else ''}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa}e{power:+d}"


def document_bytes(text: str) -> bytes:
    """Turn one JSON text into its document, or say why it is none."""
    try:
        kind, payload = _encode(_DECODER.decode(text))
    except json.JSONDecodeError as error:
        raise InvalidRequestError(f"no JSON: {error}") from None
    except RecursionError:
        raise InvalidRequestError("JSON that is nested too deeply") from None
    if kind == _NESTED:
        return payload
    return _container(_SCALAR, [(kind, payload)])


def _integer(digits: str) -> int | float:
    if len(digits.lstrip("-")) > _LARGEST_DIGITS:
        return float(digits)
    value = int(digits)
    return value if -(1 << 63) <= value < 1 << 64 else float(digits)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequestError(f"an object has the key {twice!r} twice")
    return found


def _constant(name: str) -> object:
    raise InvalidRequestError(f"no JSON: {name} is no number that JSON knows")


_ENCODER = json.JSONEncoder(ensure_ascii=False)
_DECODER = json.JSONDecoder(parse_int=_integer, object_pairs_hook=_object, parse_constant=_constant)


def _encode(value: object) -> tuple[int, bytes]:
    """Return kind and payload of an entry."""
    if isinstance(value, dict | list):
        return _NESTED, _nested(value)
    if isinstance(value, str):
        return _STRING, _utf8(value)
    if isinstance(value, float):
        return _NUMBER, _double_bytes(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _NUMBER, _integer_bytes(value)
    return _WORD_OF[value], b""


def _nested(value: dict[str, object] | list[object]) -> bytes:
    if isinstance(value, list):
        return _container(_ARRAY | len(value), [_encode(child) for child in value])
    by_key = sorted((_utf8(key), _encode(child)) for key, child in value.items())
    keys = [(_STRING, key) for key, _ in by_key]
    return _container(_OBJECT | len(keys), [*keys, *(child for _, child in by_key)])


def _container(header: int, entries: list[tuple[int, bytes]]) -> bytes:
    payloads = [payload for _, payload in entries]
    if max(map(len, payloads), default=0) > _LENGTH:
        raise InvalidRequestError("a JSON value of 256 MiB and more")
    words = [kind << _KIND_SHIFT | len(payload) for kind, payload in entries]
    return b"".join([struct.pack(f">{len(words) + 1}I", header, *words), *payloads])


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _double_bytes(value: float) -> bytes:
    if math.isinf(value):
        raise InvalidRequestError("a number is beyond the doubles")
    return struct.pack(">Bd", _DOUBLE, value)


def _integer_bytes(value: int) -> bytes:
    if value == 0:
        return bytes([_ZERO])
    bits = value.bit_length() if value > 0 else (value + 1).bit_length() + 1
    width = next(width for width in _INTEGER_BYTES if bits <= 8 * width)
    tag = _POSITIVE if value > 0 else _NEGATIVE
    return bytes([tag]) + value.to_bytes(width, "big", signed=value < 0)
