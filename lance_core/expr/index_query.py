"""What a scalar index can be asked: the part of a filter that one index may answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class AnyOf:
    """Rows whose value is one of some.

    ``values`` has the type of the column and holds no null. Floats are compared bit by bit: who
    wants both zeros names both.
    """

    values: pa.Array


@dataclass(frozen=True, slots=True)
class Between:
    """Rows whose value lies in a range of the index's order; None = open on that side.

    Floats are ordered as -NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN; texts and binaries by bytes.
    The bounds have the type of the column.
    """

    lower: pa.Scalar | None
    upper: pa.Scalar | None
    includes_lower: bool = True
    includes_upper: bool = True


@dataclass(frozen=True, slots=True)
class IsNull:
    """Rows without a value."""


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Rows whose text or binary begins with a prefix.

    With ``is_exact`` false more is asked of what follows, so that rows found are only possible.
    """

    prefix: pa.Scalar
    is_exact: bool


@dataclass(frozen=True, slots=True)
class ContainsAll:
    """Rows whose text contains every one of some texts; rows found are only possible."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class HasLabels:
    """Rows whose list holds all, or any, of some labels, of which one may be null."""

    labels: pa.Array
    needs_all: bool


@dataclass(frozen=True, slots=True)
class HasWords:
    """Rows whose text has all words of another; rows found are only possible."""

    text: str


LeafQuery = AnyOf | Between | IsNull | StartsWith | ContainsAll | HasLabels | HasWords


@dataclass(frozen=True, slots=True)
class IndexLeaf:
    """A test of one column as an index may answer it.

    Attributes
    ----------
    field_id
        The column, or the part of a struct.
    queries
        Ways to ask for a superset of the same rows, the tightest first: an index answers the first
        that it supports.
    is_negated
        The test holds where the queries do not, and the value is not null.
    """

    field_id: int
    queries: tuple[LeafQuery, ...]
    is_negated: bool = False
