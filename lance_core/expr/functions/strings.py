"""Functions of texts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.errors import TypeMismatchError
from lance_core.expr.functions.per_value import per_value, with_constants
from lance_core.expr.functions.signature import (
    Function,
    always,
    like_first,
    printable,
    takes,
    takes_many,
    text,
    text_or_bytes,
    whole,
)
from lance_core.expr.made_size import require_size
from lance_core.expr.regex_syntax import translated
from lance_core.expr.words import have_words, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.expr.convert import Values
    from lance_core.expr.functions.per_value import OnConstants
    from lance_core.expr.functions.signature import Evaluate

_LONGEST = 1 << 40
"""No text has as many characters."""
_LONGEST_EXPRESSION = 10_000
"""Characters of a regular expression; larger ones take whole seconds to prepare."""
_FLAGS = frozenset("imsuxU")


def _is_ascii(texts: pa.Array) -> bool:
    return bool(pc.all(pc.string_is_ascii(texts), min_count=0).as_py())


def _folding(ascii_only: Callable[[pa.Array], pa.Array], compute: Callable[[str], str]) -> Evaluate:
    """Return a change of letters: Arrow knows one letter for one letter, languages more."""
    return lambda texts, _: (
        ascii_only(texts) if _is_ascii(texts) else per_value(texts, compute, texts.type)
    )


def _on_constants(compute: OnConstants, kind: pa.DataType | None = None) -> Evaluate:
    return lambda first, others: with_constants(
        compute, first, others, first.type if kind is None else kind
    )


def _left(texts: pa.Array, number: int) -> pa.Array:
    return pc.utf8_slice_codeunits(texts, 0, max(number, -_LONGEST))


def _right(texts: pa.Array, number: int) -> pa.Array:
    if number == 0:
        return pc.utf8_slice_codeunits(texts, 0, 0)
    return pc.utf8_slice_codeunits(texts, min(-number, _LONGEST))


def _trimmed(texts: pa.Array, characters: str = " ") -> pa.Array:
    return pc.utf8_trim(texts, characters=characters) if characters != "" else texts


def _replaced(texts: pa.Array, old: str, new: str) -> pa.Array:
    if old == "":
        places = pc.sum(pc.add(pc.utf8_length(texts), 1)).as_py() or 0
    else:
        places = pc.sum(pc.count_substring(texts, pattern=old)).as_py() or 0
    require_size(texts.nbytes + places * len(new.encode()))
    if old == "":
        return per_value(texts, lambda each: each.replace("", new), texts.type)
    return pc.replace_substring(texts, pattern=old, replacement=new)


def _found(texts: pa.Array, part: str) -> pa.Array:
    if _is_ascii(texts):
        return pc.add(pc.find_substring(texts, pattern=part), 1)
    return per_value(texts, lambda each: each.find(part) + 1, pa.int64())


def _part(texts: pa.Array, separator: str, number: int) -> pa.Array:
    if number == 0:
        raise TypeMismatchError("split_part counts parts from 1, or from -1 at the end; not from 0")

    def part(each: str) -> str:
        parts = each.split(separator) if separator != "" else [each]
        at = number - 1 if number > 0 else number
        return parts[at] if -len(parts) <= at < len(parts) else ""

    return per_value(texts, part, texts.type)


def _matches(texts: pa.Array, pattern: str, flags: str = "") -> pa.Array:
    if not set(flags) <= _FLAGS:
        raise TypeMismatchError(
            f"flags of regular expressions are i, m, s, x, u and U, not {flags[:20]!r}"
        )
    if len(pattern) > _LONGEST_EXPRESSION:
        raise TypeMismatchError(
            f"the expression has {len(pattern)} characters, the limit is {_LONGEST_EXPRESSION}"
        )
    whole = f"(?{flags}){pattern}" if flags != "" else pattern
    return pc.match_substring_regex(texts, pattern=translated(whole).pattern)


def _joined(first: pa.Array, others: Sequence[Values]) -> pa.Array:
    parts = [first, *others]
    require_size(
        sum(each.nbytes if isinstance(each, pa.Array) else _repeated(each, first) for each in parts)
    )
    # Filled, because Arrow 26 drops rows of nothing but nulls when it is told to skip those.
    filled = [pc.fill_null(each.cast(pa.large_string()), "") for each in parts]
    empty = pa.scalar("", pa.large_string())
    return pc.binary_join_element_wise(*filled, empty).cast(pa.string())


def _repeated(value: pa.Scalar, rows: pa.Array) -> int:
    return len((value.as_py() or "").encode()) * len(rows)


def _has_tokens(texts: pa.Array, asked: str) -> pa.Array:
    return have_words(texts, words(asked))


def _sha256(each: str | bytes) -> bytes:
    return hashlib.sha256(each.encode() if isinstance(each, str) else each).digest()


def _md5(each: str) -> str:
    return hashlib.md5(each.encode(), usedforsecurity=False).hexdigest()


_TWO_TEXTS = takes(text, text)
_TRUTH = always(pa.bool_())
_MATCH = ("(text, expression[, flags])", takes(text, text, text, optional=1), _TRUTH)
_LENGTH = (
    "(text)",
    takes(text_or_bytes),
    always(pa.int32()),
    lambda values, _: (
        pc.utf8_length(values)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        else pc.binary_length(values)
    ),
)


def _starts(texts: pa.Array, part: str) -> pa.Array:
    return pc.starts_with(texts, pattern=part)


def _ends(texts: pa.Array, part: str) -> pa.Array:
    return pc.ends_with(texts, pattern=part)


def _contains(texts: pa.Array, part: str) -> pa.Array:
    return pc.match_substring(texts, pattern=part)


LIKE = Function("regexp_like", *_MATCH, _on_constants(_matches, pa.bool_()))
"""Whether a text matches a regular expression somewhere."""

FUNCTIONS = (
    LIKE,
    # Really a list of what matched; all that can be done with it is to ask whether it is there.
    Function("regexp_match", *_MATCH[:2], always(pa.list_(pa.string())), _on_constants(_matches)),
    Function("starts_with", "(text, text)", _TWO_TEXTS, _TRUTH, _on_constants(_starts, pa.bool_())),
    Function("ends_with", "(text, text)", _TWO_TEXTS, _TRUTH, _on_constants(_ends, pa.bool_())),
    Function("contains", "(text, text)", _TWO_TEXTS, _TRUTH, _on_constants(_contains, pa.bool_())),
    Function(
        "contains_tokens",
        "(text, words)",
        _TWO_TEXTS,
        _TRUTH,
        _on_constants(_has_tokens, pa.bool_()),
    ),
    Function(
        "strpos",
        "(text, text)",
        _TWO_TEXTS,
        always(pa.int32()),
        _on_constants(_found, pa.int32()),
    ),
    Function("lower", "(text)", takes(text), like_first, _folding(pc.ascii_lower, str.lower)),
    Function("upper", "(text)", takes(text), like_first, _folding(pc.ascii_upper, str.upper)),
    *(Function(name, *_LENGTH) for name in ("length", "char_length", "character_length")),
    Function(
        "octet_length",
        "(text)",
        takes(text),
        always(pa.int32()),
        lambda values, _: pc.binary_length(values),
    ),
    Function("left", "(text, number)", takes(text, whole), like_first, _on_constants(_left)),
    Function("right", "(text, number)", takes(text, whole), like_first, _on_constants(_right)),
    Function(
        "btrim",
        "(text[, characters])",
        takes(text, text, optional=1),
        like_first,
        _on_constants(_trimmed),
    ),
    Function("concat", "(text, text, ...)", takes_many(printable), always(pa.string()), _joined),
    Function(
        "replace", "(text, old, new)", takes(text, text, text), like_first, _on_constants(_replaced)
    ),
    Function("reverse", "(text)", takes(text), like_first, lambda texts, _: pc.utf8_reverse(texts)),
    Function(
        "split_part",
        "(text, separator, number)",
        takes(text, text, whole),
        like_first,
        _on_constants(_part),
    ),
    Function(
        "md5",
        "(text)",
        takes(text),
        always(pa.string()),
        lambda values, _: per_value(values, _md5, pa.string()),
    ),
    Function(
        "sha256",
        "(text)",
        takes(text_or_bytes),
        always(pa.binary()),
        lambda values, _: per_value(values, _sha256, pa.binary()),
    ),
)
"""Functions of this module."""
