"""What a filter says, bound to the columns of a table: every node knows its type and its place.

``And``, ``Or`` and ``Not`` join tests; every other node of type bool is a test of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from lance_core.expr.functions.signature import Function

_BOOL = pa.bool_()


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a part of a struct that is stored as a column of its own.

    Attributes
    ----------
    path
        As `lance_core.schema.path` splits it.
    type
        Without extension and dictionary.
    place
        Of its first character in the text, from 1; so for all nodes.
    """

    path: str
    type: pa.DataType
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A value.

    Attributes
    ----------
    value
        Of the type that it has; null has type null.
    place
        See `Column`.
    is_plain
        Written without a type, so that it takes the type of the column that it is compared with.
    is_given
        The value of a parameter, which may be a decimal number written as another or as a text.
    """

    value: pa.Scalar
    place: int
    is_plain: bool = False
    is_given: bool = False

    @property
    def type(self) -> pa.DataType:
        """Type of the value."""
        return self.value.type


@dataclass(frozen=True, slots=True, eq=False)
class And:
    """True if all tests are, false if one is, else unknown; at least two."""

    children: tuple[Node, ...]
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Or:
    """True if one test is, false if all are, else unknown; at least two."""

    children: tuple[Node, ...]
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Not:
    """True where a test is false, unknown where it is."""

    child: Node
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Compare:
    """A comparison of two values of one type.

    Attributes
    ----------
    operator
        One of ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``.
    left, right
        What is compared.
    place
        See `Column`.
    """

    operator: str
    left: Node
    right: Node
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Whether two values of one type differ, where null equals null; never unknown."""

    left: Node
    right: Node
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """Whether a value lies between two others of its type, both included."""

    child: Node
    low: Node
    high: Node
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class InSet:
    """Whether a value is one of many.

    Attributes
    ----------
    child
        The value.
    values
        Of the type of the child, without nulls.
    has_null
        NULL is among the values too: what is none of them is unknown.
    place
        See `Column`.
    """

    child: Node
    values: pa.Array
    has_null: bool
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class IsNull:
    """Whether there is no value; never unknown."""

    child: Node
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class IsTruth:
    """Whether a test is true, or is false; never unknown."""

    child: Node
    truth: bool
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Like:
    r"""Whether a text matches a pattern of ``%``, ``_`` and ``\``, from its begin to its end."""

    child: Node
    pattern: Node
    ignores_case: bool
    place: int
    type: pa.DataType = field(default=_BOOL, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """A value as another type.

    Attributes
    ----------
    child
        The value.
    type
        The other type.
    place
        See `Column`.
    gives_null
        Null where the value cannot be had as that type; else that is an error.
    """

    child: Node
    type: pa.DataType
    place: int
    gives_null: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """An operator on two values of one type, or two decimals: ``+ - * / % || << >>``."""

    operator: str
    left: Node
    right: Node
    type: pa.DataType
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Negative:
    """A number with the other sign."""

    child: Node
    place: int

    @property
    def type(self) -> pa.DataType:
        """Type of the number."""
        return self.child.type


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function of some values."""

    function: Function
    arguments: tuple[Node, ...]
    type: pa.DataType
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of a struct that is not a column of its own, by its name."""

    child: Node
    name: str
    type: pa.DataType
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An item of a list, counted from 1, or from -1 at the end; null where there is none."""

    child: Node
    index: Node
    type: pa.DataType
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A list of some values of one type."""

    children: tuple[Node, ...]
    type: pa.DataType
    place: int


Node = (
    Column
    | Literal
    | And
    | Or
    | Not
    | Compare
    | Distinct
    | Between
    | InSet
    | IsNull
    | IsTruth
    | Like
    | Cast
    | Arithmetic
    | Negative
    | Call
    | Part
    | Item
    | Items
)
