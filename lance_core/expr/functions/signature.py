"""What a function takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.expr.kinds import common_type, is_binary, is_list, is_moment, is_number, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lance_core.expr.convert import Values

    Types = Sequence[pa.DataType]
    Accept = Callable[[Types], Types | None]
    """Returns what the arguments are converted to; None if they are not what is taken."""

    Evaluate = Callable[[pa.Array, Sequence[Values]], pa.Array]
    """The first argument, then the others, which may be scalars."""

    Kind = Callable[[pa.DataType], pa.DataType | None]
    """Returns what an argument of a type is converted to; None if it is of another kind."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

    Attributes
    ----------
    name
        In small letters.
    usage
        Told in errors.
    accept
        Judges the types of the arguments.
    result
        Type of the result for arguments as they were converted.
    evaluate
        Computes it.
    """

    name: str
    usage: str
    accept: Accept
    result: Callable[[Types], pa.DataType]
    evaluate: Evaluate


def text(kind: pa.DataType) -> pa.DataType | None:
    """Take texts."""
    if pa.types.is_null(kind):
        return pa.string()
    return kind if is_text(kind) else None


def printable(kind: pa.DataType) -> pa.DataType | None:
    """Take texts, and numbers as texts."""
    return pa.string() if is_number(kind) or pa.types.is_boolean(kind) else text(kind)


def text_or_bytes(kind: pa.DataType) -> pa.DataType | None:
    """Take texts and bytes."""
    return kind if is_binary(kind) else text(kind)


def whole(kind: pa.DataType) -> pa.DataType | None:
    """Take whole numbers, as int64."""
    return pa.int64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else None


def number(kind: pa.DataType) -> pa.DataType | None:
    """Take numbers."""
    if pa.types.is_null(kind):
        return pa.int64()
    return kind if is_number(kind) else None


def real(kind: pa.DataType) -> pa.DataType | None:
    """Take numbers, as float64."""
    return pa.float64() if is_number(kind) or pa.types.is_null(kind) else None


def floating(kind: pa.DataType) -> pa.DataType | None:
    """Take numbers, all but float32 as float64."""
    return kind if pa.types.is_float32(kind) else real(kind)


def moment(kind: pa.DataType) -> pa.DataType | None:
    """Take dates and timestamps, dates as their midnight."""
    if pa.types.is_date(kind) or pa.types.is_null(kind):
        return pa.timestamp("ms")
    return kind if is_moment(kind) else None


def lists(kind: pa.DataType) -> pa.DataType | None:
    """Take lists of plain values, those of one length as lists of any."""
    return None if is_list(kind) and pa.types.is_nested(kind.value_type) else any_list(kind)


def any_list(kind: pa.DataType) -> pa.DataType | None:
    """Take lists of anything, those of one length as lists of any."""
    if not is_list(kind):
        return None
    return pa.large_list(kind.value_type) if pa.types.is_fixed_size_list(kind) else kind


def _with_items(kind: pa.DataType, item: pa.DataType) -> pa.DataType:
    """Return the type of lists of other items; the same if it can be, which indices know."""
    return kind if kind.value_type == item else pa.large_list(item)


def takes(*kinds: Kind, optional: int = 0) -> Accept:
    """Take arguments of these kinds, of which some at the end may be left out."""

    def accept(types: Types) -> Types | None:
        if not len(kinds) - optional <= len(types) <= len(kinds):
            return None
        return _all_or_none([kind(each) for kind, each in zip(kinds, types, strict=False)])

    return accept


def takes_many(kind: Kind) -> Accept:
    """Take one argument of a kind or more."""
    return lambda types: _all_or_none([kind(each) for each in types]) if len(types) > 0 else None


def takes_alike(least: int, most: int | None = None) -> Accept:
    """Take arguments that have a type in common, and convert them to it."""

    def accept(types: Types) -> Types | None:
        if len(types) < least or (most is not None and len(types) > most):
            return None
        common: pa.DataType | None = types[0]
        for each in types[1:]:
            common = None if common is None else common_type(common, each)
        is_plain = common is not None and not pa.types.is_nested(common)
        return [common] * len(types) if is_plain else None

    return accept


def takes_list_and_item(types: Types) -> Types | None:
    """Take a list and what may be one of its items."""
    both = _list_and(types)
    common = None if both is None else common_type(both[0].value_type, both[1])
    return None if both is None or common is None else [_with_items(both[0], common), common]


def takes_two_lists(types: Types) -> Types | None:
    """Take two lists whose items have a type in common."""
    both = _list_and(types)
    other = None if both is None else lists(both[1])
    common = (
        None if both is None or other is None else common_type(both[0].value_type, other.value_type)
    )
    if both is None or other is None or common is None:
        return None
    return [_with_items(both[0], common), _with_items(other, common)]


def _list_and(types: Types) -> tuple[pa.DataType, pa.DataType] | None:
    if len(types) != 2:  # noqa: PLR2004  # the list and the other
        return None
    first = lists(types[0])
    return None if first is None else (first, types[1])


def _all_or_none(types: Sequence[pa.DataType | None]) -> Types | None:
    found = [each for each in types if each is not None]
    return found if len(found) == len(types) else None


def always(kind: pa.DataType) -> Callable[[Types], pa.DataType]:
    """Return one type whatever the arguments are."""
    return lambda _: kind


def like_first(types: Types) -> pa.DataType:
    """Return the type of the first argument."""
    return types[0]
